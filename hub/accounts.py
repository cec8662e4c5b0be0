"""The accounts that servers run under: who gets one, and a folder for the server's own files."""

import grp
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile

from gpu_slots import Refused

OTHERS = 0o077  # what a home's mode may say of anybody but its owner: nothing
# A kernel's sockets lie in the folder of the server; a path of a socket has 107 bytes.
SOCKET = len("/d2lmgpu-server-01234567/kernel-01234567-0123-0123-0123-0123456789ab-ipc-5")
LONGEST = 107 - SOCKET  # bytes of the path in which that folder is made
ROOM = 100 * 2**20  # bytes; the course itself and some notebooks with pictures


def ensure(name, group, create) -> None:
    """Check that ``name`` is a Unix account of ``group``; create it if it is missing and allowed.

    A login from outside must never start a server as root or as an administrator who happens to
    have that name: hence the group. Its home is closed to others, see ``close_home``. Raises
    ``Refused`` (403; 503 if no account could be made).
    """
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        if not create:
            raise Refused(403, "no-account", f"{name} has no account on this machine.") from None
        make(name, group)
        account = pwd.getpwnam(name)
    if grp.getgrnam(group).gr_gid not in os.getgrouplist(name, account.pw_gid):
        message = f"The account {name} is not in the group {group}: ask your instructor."
        raise Refused(403, "not-a-learner", message)
    close_home(account)


def make(name, group) -> None:
    """Make the account ``name`` in ``group``, with a home. Raises ``Refused``."""
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}", name):
        raise Refused(403, "no-account", f"{name!r} cannot be the name of a Unix account.")
    command = ["useradd", "--create-home", "--shell", "/bin/bash", "--groups", group, name]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        reason = " ".join(answer.stderr.split()) or "useradd gave no reason"
        message = f"No account could be made for {name} ({reason}): tell your instructor."
        raise Refused(503, "no-account", message)


def close_home(account: pwd.struct_passwd) -> None:
    """Close the home of ``account`` to all others; an older system makes homes that all can read.

    The folder alone: what is in it cannot be reached then. Raises ``Refused`` (403) for a home that
    is not the learner's own folder, or cannot be closed.
    """
    home, reason = account.pw_dir, ""
    try:
        # The folder itself, held open: what its name leads to could change between two looks.
        folder = os.open(os.path.realpath(home), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            status = os.fstat(folder)
            if status.st_uid != account.pw_uid:
                reason = "it belongs to another account"
            elif status.st_mode & OTHERS:
                os.chmod(f"/proc/self/fd/{folder}", stat.S_IMODE(status.st_mode) & ~OTHERS)
        finally:
            os.close(folder)
    except OSError as error:
        reason = os.strerror(error.errno)
    if reason:
        raise Refused(
            403,
            "open-home",
            f"The home of {account.pw_name}, {home}, cannot be closed to the other learners"
            f" ({reason}): tell your instructor.",
        )


def runtime_folder(account: str | None) -> str:
    """A new folder that only ``account`` can read (None: the hub's own); returns its path.

    A server keeps its kernels' keys and sockets there and cannot start without. In the learner's
    home a full disk would stop the only server in which the learner can make room.
    """
    folder = tempfile.mkdtemp(prefix="d2lmgpu-server-")
    if account:
        shutil.chown(folder, account)
    return folder


def little_room(home: str) -> str:
    """What to tell a learner whose ``home`` is on a nearly full disk; "" while there is room.

    The page that brings a chapter says only that something failed.
    """
    # Without a home there is room: the first start makes it.
    free = shutil.disk_usage(home).free if os.path.isdir(home) else ROOM
    advice = (
        f"Your home folder has only {free // 2**20} MiB left, too little to bring a chapter or to"
        " save your work: start with 0 GPUs, delete what you do not need in JupyterLab's list of"
        " files, and open the chapter again."
    )
    return advice if free < ROOM else ""
