"""The hub's settings: ``HUB_…`` variables (README.md lists them), each checked, refused in words.

The secrets of OAuth and LTI are not among them: those authenticators read their own.
"""

import ipaddress
import math
import os
import re
import sys
from dataclasses import dataclass, field, fields

import safety
from gpu_slots import NO_LIMIT
from jupyterhub.traitlets import ByteSpecification
from safety import SettingError
from traitlets import TraitError

FOLDER = re.compile(r"\w[\w.-]*")  # of the learner's, which nbgitpuller makes
BRANCH = re.compile(r"\w[\w./-]*")


def setting(default, least, most=math.inf, parse=None, words="") -> object:
    """A setting from ``least`` to ``most``; ``parse`` turns text into it, ``words`` describe it."""
    parse = parse or type(default)
    kind = "a whole number" if parse is int else "a number"
    words = words or f"{kind} from {least} {'on' if most == math.inf else f'to {most}'}"
    return field(default=default, metadata=dict(least=least, most=most, parse=parse, words=words))


def size(text) -> int:
    """The bytes of a size such as 8G."""
    return ByteSpecification().validate(None, text)


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; ``HUB_ADDRESS`` is ``address`` and so on."""

    address: str = "127.0.0.1"
    port: int = setting(8000, 1, 65533)  # the two after it are the hub's own
    state: str = ""
    auth: str = "shared-password"
    password: str = field(default="", repr=False)
    users: str = ""
    admins: str = ""
    accounts: str = ""
    spawner: str = "local"
    connect_address: str = ""
    group: str = "learners"
    create_accounts: int = setting(0, 0, 1)
    tls_key: str = ""
    tls_cert: str = ""
    subdomain_host: str = ""
    repositories: str = ""
    python: str = sys.executable
    memory: int = setting(0, 1, parse=size, words="a size such as 8G or 512M")  # 0: no limit
    cpus: float = setting(0.0, 0.01)  # 0: no limit; the kernel takes no smaller share
    gpus_per_learner: int = setting(NO_LIMIT, 0)
    simulated_gpus: int = setting(0, 0)
    idle_timeout: int = setting(3600, 1)
    silent_timeout: int = setting(21600, 0)
    max_age: int = setting(43200, 0)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine reaches the hub's address; of a host name we cannot know."""
        ip = ip_address(self.address)
        return self.address == "localhost" or (ip is not None and ip.is_loopback)

    @property
    def hub_address(self) -> str:
        """Where the hub itself listens, behind the proxy."""
        return self.connect_address or "127.0.0.1"

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
    rules = {field.name: field.metadata for field in fields(Settings)}
    given = {}
    for variable, text in environ.items():
        name = variable.removeprefix("HUB_").lower()
        if not variable.startswith("HUB_") or text == "":
            continue
        if name not in rules:
            raise SettingError(f"{variable} is no setting of this hub; README.md lists them.")
        given[name] = in_range(variable, text, **rules[name]) if rules[name] else text
    is_try_out = safety.is_open(given.get("auth", Settings.auth))
    given.setdefault("accounts", "own" if is_root and not is_try_out else "one")
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    given.setdefault("state", f"{'/var/lib' if is_root else home}/d2lmgpu-hub")
    settings = Settings(**given)
    check_texts(settings)
    safety.check(settings, is_root)
    return settings


def in_range(variable: str, text: str, least, most, parse, words) -> int | float:
    """The number in ``text``; raises ``SettingError`` for none, and for one out of its range."""
    try:
        value = parse(text)
    except (TraitError, ValueError, OverflowError):  # the last: infG
        value = math.nan  # in no range
    if not least <= value <= most or value == math.inf:
        raise SettingError(f"{variable} must be {words}, not {text!r}.")
    return value


def ip_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address, of version 4 or 6, that ``address`` is; None if it is none."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def check_texts(settings: Settings) -> None:
    """Raise ``SettingError`` for a text that JupyterHub or its proxy would stumble over later."""
    if ":" in settings.address and not ip_address(settings.address):
        raise SettingError(
            f"HUB_ADDRESS is an IP address or a host name, not {settings.address!r}: the port goes"
            " into HUB_PORT, and an IPv6 address has no brackets."
        )
    if bool(settings.tls_key) != bool(settings.tls_cert):
        raise SettingError("HUB_TLS_KEY and HUB_TLS_CERT belong together: give both files.")
    for name, path in {"KEY": settings.tls_key, "CERT": settings.tls_cert}.items():
        if path and not (os.path.isfile(path) and os.access(path, os.R_OK)):
            raise SettingError(f"HUB_TLS_{name}={path!r} is no file that this account can read.")
    for repository in settings.repositories.split():
        address, _, branch = repository.rpartition("#")
        if not FOLDER.fullmatch(address.rpartition("/")[2]) or not BRANCH.fullmatch(branch):
            raise SettingError(
                f"HUB_REPOSITORIES: {repository!r} is no ADDRESS#BRANCH whose address ends in the"
                " name of a folder, such as https://git.example.org/more-exercises#main."
            )
    if settings.subdomain_host and not settings.subdomain_host.startswith("https://"):
        raise SettingError("HUB_SUBDOMAIN_HOST starts with https://: its cookies need TLS.")


if __name__ == "__main__":  # whether the hub would take the settings: install.py asks
    try:
        read()
    except SettingError as error:
        sys.exit(f"The hub would not start: {error}")
