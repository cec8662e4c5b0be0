"""Which settings are safe together: who may log in, from where, and under which Unix account."""

import grp
import ipaddress
import os
import shutil
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import accounts
from jupyterhub.auth import Authenticator, DummyAuthenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator
from traitlets.utils.importstring import import_item

from d2lmgpu.process.cluster import state

OPEN = (DummyAuthenticator, SharedPasswordAuthenticator)  # the login is no proof of who it is
# The instructor makes these accounts or admits them; elsewhere anybody may get one. By name, since
# two are of packages that need not be installed.
ADMITTED = {
    "jupyterhub.auth.PAMAuthenticator",
    "nativeauthenticator.nativeauthenticator.NativeAuthenticator",
    "ltiauthenticator.lti13.auth.LTI13Authenticator",
}
OTHER_LOGIN = "use pam, native, an OAuth provider or LTI 1.3 (see README.md)"


class SettingError(ValueError):
    """A setting that the hub will not start with: what was given and what to do."""


def authenticator_class(name: str) -> type[Authenticator]:
    """The class that JupyterHub would take for ``name``: a registered name or an import path."""
    registered = {entry.name: entry for entry in entry_points(group="jupyterhub.authenticators")}
    there_are = f"there are {', '.join(sorted(registered))}. README.md says what to install"
    try:
        authenticator = registered[name].load() if name in registered else import_item(name)
    except (ImportError, ValueError) as error:
        message = f"HUB_AUTH={name!r} is not installed ({error}); {there_are} for others."
        raise SettingError(message) from error
    if not (isinstance(authenticator, type) and issubclass(authenticator, Authenticator)):
        raise SettingError(f"HUB_AUTH={name!r} is not a login; {there_are} for others.")
    return authenticator


def is_open(auth: str) -> bool:
    """Whether anybody can log in as anybody by the login ``auth``."""
    return issubclass(authenticator_class(auth), OPEN)


def check(settings, is_root: bool) -> None:
    """Raise ``SettingError`` for a combination that would let learners in, or at each other."""
    if settings.accounts not in ("own", "one"):
        raise SettingError(f"HUB_ACCOUNTS is 'own' or 'one', not {settings.accounts!r}.")
    if settings.accounts == "own" and not is_root:
        raise SettingError("HUB_ACCOUNTS=own starts servers under other accounts: run as root.")
    check_login(settings)
    check_spawner(settings)
    check_sockets()
    if not settings.on_loopback:
        check_public(settings)
    if settings.accounts == "own":
        check_own_accounts(settings)


def check_login(settings) -> None:
    """The login lets in those whom the instructor knows, and each as nobody else."""
    authenticator = authenticator_class(settings.auth)
    login = f"HUB_AUTH={settings.auth}"
    if issubclass(authenticator, SharedPasswordAuthenticator) and len(settings.password) < 8:
        raise SettingError(f"{login} needs a HUB_PASSWORD of 8 characters or more.")
    if issubclass(authenticator, OPEN):
        # On loopback as well: learners' own servers reach the hub's address there.
        if settings.accounts == "own":
            raise SettingError(
                f"{login} lets anybody be anybody, so accounts of their own (HUB_ACCOUNTS=own)"
                f" would keep no learners apart: {OTHER_LOGIN}, or HUB_ACCOUNTS=one for a try-out."
            )
        return
    if not settings.allowed_users:
        raise SettingError(f"{login}: say in HUB_USERS who may log in, with spaces between.")
    classes = {f"{base.__module__}.{base.__qualname__}" for base in authenticator.__mro__}
    if "*" in settings.allowed_users and not classes & ADMITTED:
        raise SettingError(
            f"{login} with HUB_USERS=* lets in everybody who has an account there: name the"
            " learners. '*' is for accounts that you make or admit (pam, native, LTI 1.3)."
        )


def check_spawner(settings) -> None:
    """What servers on other machines need; who reaches the hub there is kept apart."""
    if settings.spawner not in ("local", "slurm"):
        raise SettingError(f"HUB_SPAWNER is 'local' or 'slurm', not {settings.spawner!r}.")
    if settings.spawner == "local":
        if settings.connect_address:
            raise SettingError("HUB_CONNECT_ADDRESS is for HUB_SPAWNER=slurm.")
        return
    slurm = "HUB_SPAWNER=slurm"
    if not shutil.which("sbatch"):
        raise SettingError(f"{slurm} needs sbatch and squeue here: install Slurm's client.")
    if settings.accounts == "own" and not shutil.which("runuser"):
        raise SettingError(f"{slurm} submits under the learners' accounts by runuser: install it.")
    try:
        address = ipaddress.ip_address(settings.connect_address)
    except ValueError:
        raise SettingError(
            f"{slurm}: give in HUB_CONNECT_ADDRESS the IP address of this machine at which the"
            f" cluster's nodes reach it, not {settings.connect_address!r}."
        ) from None
    if settings.simulated_gpus:
        raise SettingError(f"{slurm} hands out what Slurm has: leave HUB_SIMULATED_GPUS out.")
    box = state.read().get("hosts", {}).values()  # of `d2lmgpu cluster`: nobody else is there
    near = ipaddress.ip_network(f"{address}/24", strict=False) if address.version == 4 else ()
    in_a_box = any(ipaddress.ip_address(host["address"]) in near for host in box)
    if not in_a_box and (settings.accounts != "own" or is_open(settings.auth)):
        raise SettingError(
            f"{slurm}: others reach {address}, so every learner needs an own account there and"
            f" here (HUB_ACCOUNTS=own, as root), and a login that proves it: {OTHER_LOGIN}."
        )


def check_sockets() -> None:
    """The sockets of kernels have room in the folder for temporary files."""
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > accounts.LONGEST:
        raise SettingError(
            f"TMPDIR={folder} is too long: the kernels' sockets lie below it, and a socket's path"
            f" has 107 bytes. Name a folder of at most {accounts.LONGEST}, such as /tmp."
        )


def check_public(settings) -> None:
    """What an address that others can reach needs."""
    where = f"HUB_ADDRESS={settings.address!r} can be reached from other machines"
    if is_open(settings.auth):
        login = f"HUB_AUTH={settings.auth} lets anybody be anybody"
        raise SettingError(f"{where}, and {login}: {OTHER_LOGIN}, or 127.0.0.1.")
    if settings.accounts != "own":
        raise SettingError(
            f"{where}: every learner needs an own account (HUB_ACCOUNTS=own, as root),"
            " or each could read what the others write."
        )
    if not settings.tls_key:
        raise SettingError(
            f"{where}, and passwords would travel in the clear: give HUB_TLS_KEY and HUB_TLS_CERT,"
            " or stay on 127.0.0.1 behind a web server that speaks TLS."
        )


def check_own_accounts(settings) -> None:
    """The group of the learners is there, and every account can run the course's Python."""
    otherwise = "For a try-out on this machine alone, HUB_ACCOUNTS=one."
    group = settings.group
    try:
        grp.getgrnam(group)
    except KeyError:
        advice = f"groupadd {group}, or name the group of those who get a server in HUB_GROUP"
        raise SettingError(f"There is no Unix group {group!r}: {advice}. {otherwise}") from None
    python = Path(settings.python)
    keeper = Path(__file__).resolve().with_name("keeper.py")
    for path, needed in ((python.absolute(), 0o001), (python.resolve(), 0o001), (keeper, 0o004)):
        bits = dict.fromkeys(path.parents, 0o001) | {path: needed}
        for part, bit in bits.items():
            if not part.exists() or not part.stat().st_mode & bit:
                raise SettingError(
                    f"Learners cannot run HUB_PYTHON={settings.python} with {keeper}: {part} is"
                    " closed to them. Install the course where everybody can read, in /opt say,"
                    f" and name its Python. {otherwise}"
                )
