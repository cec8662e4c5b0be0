"""The hub's settings: read from the environment, checked, and refused in words when unsafe.

Every setting is a ``HUB_…`` variable; README.md lists them. The secrets of OAuth and LTI are not
among them: those authenticators read their own.
"""

import grp
import ipaddress
import os
import sys
from dataclasses import dataclass, fields
from importlib.metadata import entry_points
from pathlib import Path

from jupyterhub.auth import DummyAuthenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator
from traitlets.utils.importstring import import_item

OPEN = (DummyAuthenticator, SharedPasswordAuthenticator)  # the login is no proof of who it is
EVERYBODY = ("github", "google")  # anybody can get an account there


class SettingError(ValueError):
    """A setting that the hub will not start with: what was given and what to do."""


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; ``HUB_ADDRESS`` is ``address`` and so on."""

    address: str = "127.0.0.1"
    port: int = 8000
    state: str = ""
    auth: str = "shared-password"
    password: str = ""
    users: str = ""
    admins: str = ""
    accounts: str = ""
    group: str = "learners"
    create_accounts: int = 0
    tls_key: str = ""
    tls_cert: str = ""
    subdomain_host: str = ""
    python: str = sys.executable
    memory: str = ""
    cpus: float = 0.0
    gpus_per_learner: int = -1
    simulated_gpus: int = 0
    idle_timeout: int = 3600
    max_age: int = 43200

    @property
    def on_loopback(self):
        if self.address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False  # '' and host names: every interface, or one we cannot know

    @property
    def allowed_users(self):
        """The names that may log in; ``{'*'}``: everybody whom the authenticator knows."""
        return set(self.users.split())


def read(environ=os.environ, is_root: bool | None = None) -> Settings:
    """The settings in ``environ``; raises ``SettingError`` for one that is unknown or unsafe."""
    is_root = os.geteuid() == 0 if is_root is None else is_root
    kinds = {field.name: field.type for field in fields(Settings)}
    given = {}
    for variable, text in environ.items():
        name = variable.removeprefix("HUB_").lower()
        if not variable.startswith("HUB_") or text == "":
            continue
        if name not in kinds:
            raise SettingError(f"{variable} is no setting of this hub; README.md lists them.")
        try:
            given[name] = kinds[name](text)
        except ValueError:
            raise SettingError(f"{variable} must be a number, not {text!r}.") from None
    given.setdefault("accounts", "own" if is_root else "one")
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = "/var/lib" if is_root else home
    given.setdefault("state", f"{folder}/d2lmgpu-hub")
    settings = Settings(**given)
    check(settings, is_root)
    return settings


def check(settings: Settings, is_root: bool) -> None:
    """Raise ``SettingError`` for a combination that would let learners in, or at each other."""
    if settings.accounts not in ("own", "one"):
        raise SettingError(f"HUB_ACCOUNTS is 'own' or 'one', not {settings.accounts!r}.")
    if settings.accounts == "own" and not is_root:
        raise SettingError("HUB_ACCOUNTS=own starts servers under other accounts: run as root.")
    if settings.accounts == "own":
        check_own_accounts(settings)
    if bool(settings.tls_key) != bool(settings.tls_cert):
        raise SettingError("HUB_TLS_KEY and HUB_TLS_CERT belong together: give both files.")
    if settings.subdomain_host and not settings.subdomain_host.startswith("https://"):
        raise SettingError("HUB_SUBDOMAIN_HOST starts with https://: its cookies need TLS.")
    authenticator = authenticator_class(settings.auth)
    if issubclass(authenticator, SharedPasswordAuthenticator) and len(settings.password) < 8:
        raise SettingError("HUB_AUTH=shared-password needs a HUB_PASSWORD of 8 characters or more.")
    if "*" in settings.allowed_users and settings.auth in EVERYBODY:
        raise SettingError(
            f"HUB_AUTH={settings.auth} with HUB_USERS=* lets in everybody who has an account"
            " there: name the learners in HUB_USERS."
        )
    if not settings.on_loopback:
        check_public(settings, authenticator)


def check_public(settings: Settings, authenticator) -> None:
    """What an address that others can reach needs, beyond ``check``."""
    where = f"HUB_ADDRESS={settings.address!r} can be reached from other machines"
    if issubclass(authenticator, OPEN):
        raise SettingError(
            f"{where}, and HUB_AUTH={settings.auth} lets anybody be anybody:"
            " use pam, native, an OAuth provider or lti13 (see README.md), or 127.0.0.1."
        )
    if settings.accounts != "own":
        raise SettingError(
            f"{where}: every learner needs an own account (HUB_ACCOUNTS=own, as root),"
            " or each could read what the others write."
        )
    if not settings.tls_key:
        raise SettingError(
            f"{where}: give HUB_TLS_KEY and HUB_TLS_CERT, or stay on 127.0.0.1 behind a web"
            " server that speaks TLS, or passwords travel in the clear."
        )
    if not settings.allowed_users:
        raise SettingError(f"{where}: say in HUB_USERS who may log in, or nobody can.")


def check_own_accounts(settings: Settings) -> None:
    """The group of the learners is there, and every account can run the course's Python."""
    otherwise = "For a try-out on this machine alone, HUB_ACCOUNTS=one."
    try:
        grp.getgrnam(settings.group)
    except KeyError:
        raise SettingError(
            f"There is no Unix group {settings.group!r} of those who get a server:"
            f" groupadd {settings.group}, or name another in HUB_GROUP. {otherwise}"
        ) from None
    for path in (Path(settings.python).absolute(), Path(settings.python).resolve()):
        for part in (path, *path.parents):
            if not part.exists() or not part.stat().st_mode & 0o001:
                raise SettingError(
                    f"Learners cannot run HUB_PYTHON={settings.python}: {part} is closed to them."
                    " Install the course where everybody can read, in /opt say, and name its"
                    f" Python. {otherwise}"
                )


def authenticator_class(name: str):
    """The class that JupyterHub would take for ``name``: a registered name or an import path."""
    registered = {entry.name: entry for entry in entry_points(group="jupyterhub.authenticators")}
    try:
        return registered[name].load() if name in registered else import_item(name)
    except ImportError as error:
        raise SettingError(
            f"HUB_AUTH={name!r} is not installed ({error}); there are"
            f" {', '.join(sorted(registered))}. README.md says what to install for others."
        ) from error
