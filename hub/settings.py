"""The hub's settings: read from the environment, each checked, and refused in words.

Every setting is a ``HUB_…`` variable; README.md lists them. The secrets of OAuth and LTI are not
among them: those authenticators read their own.
"""

import ipaddress
import math
import os
import sys
from dataclasses import dataclass, fields

import safety
from jupyterhub.traitlets import ByteSpecification
from safety import SettingError
from traitlets import TraitError

# The least and the most that a number may be. The two ports after HUB_PORT are the hub's own; the
# kernel takes no smaller share of a CPU.
RANGES = {
    "port": (1, 65533),
    "create_accounts": (0, 1),
    "cpus": (0.01, math.inf),
    "gpus_per_learner": (0, math.inf),
    "simulated_gpus": (0, math.inf),
    "idle_timeout": (1, math.inf),
    "max_age": (0, math.inf),
}


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
    def on_loopback(self) -> bool:
        """Whether only this machine reaches the hub's address."""
        if self.address == "localhost":
            return True
        if not is_ip(self.address):
            return False  # a host name: we cannot know
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def url(self) -> str:
        """The hub's address as a browser takes it."""
        scheme = "https" if self.tls_key else "http"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}:{self.port}"

    @property
    def allowed_users(self) -> set[str]:
        """The names that may log in; ``{'*'}``: everybody whom the authenticator knows."""
        return set(self.users.split())

    @property
    def everybody(self) -> bool:
        """Whether all whom the login knows may log in; only a try-out need not say so."""
        unnamed = not self.allowed_users and self.on_loopback and safety.is_open(self.auth)
        return "*" in self.allowed_users or unnamed


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
        given[name] = text if kinds[name] is str else number(variable, text, kinds[name])
    is_try_out = safety.is_open(given.get("auth", Settings.auth))
    given.setdefault("accounts", "own" if is_root and not is_try_out else "one")
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = "/var/lib" if is_root else home
    given.setdefault("state", f"{folder}/d2lmgpu-hub")
    settings = Settings(**given)
    check_texts(settings)
    safety.check(settings, is_root)
    return settings


def number(variable: str, text: str, kind: type) -> int | float:
    """The number in ``text``; raises ``SettingError`` for none, and for one out of its range."""
    least, most = RANGES[variable.removeprefix("HUB_").lower()]
    try:
        value = kind(text)
    except ValueError:
        value = math.nan  # in no range
    if not least <= value <= most or value == math.inf:
        whole = "whole number" if kind is int else "number"
        upper = "on" if most == math.inf else f"to {most}"
        raise SettingError(f"{variable} must be a {whole} from {least} {upper}, not {text!r}.")
    return value


def is_ip(address: str) -> bool:
    """Whether ``address`` is an IP address, of version 4 or 6."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def check_texts(settings: Settings) -> None:
    """Raise ``SettingError`` for a text that JupyterHub or its proxy would stumble over later."""
    if ":" in settings.address and not is_ip(settings.address):
        raise SettingError(
            f"HUB_ADDRESS is an IP address or a host name, not {settings.address!r}: the port goes"
            " into HUB_PORT, and an IPv6 address has no brackets."
        )
    if bool(settings.tls_key) != bool(settings.tls_cert):
        raise SettingError("HUB_TLS_KEY and HUB_TLS_CERT belong together: give both files.")
    for name in ("tls_key", "tls_cert"):
        path = getattr(settings, name)
        if path and not (os.path.isfile(path) and os.access(path, os.R_OK)):
            raise SettingError(
                f"HUB_{name.upper()}={path!r} is no file that the hub can read: give the path of"
                " the certificate's file, and start the hub under an account that may read it."
            )
    if settings.subdomain_host and not settings.subdomain_host.startswith("https://"):
        raise SettingError("HUB_SUBDOMAIN_HOST starts with https://: its cookies need TLS.")
    try:
        limit = ByteSpecification().validate(None, settings.memory) if settings.memory else 1
    except (TraitError, ValueError, OverflowError):  # the last two: 'nanG' and 'infG'
        limit = 0
    if limit < 1:
        raise SettingError(
            f"HUB_MEMORY must be a size such as 8G or 512M, not {settings.memory!r}."
        )
