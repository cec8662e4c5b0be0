"""Calls to Linux for which Python has no function. Each raises OSError with the kernel's reason."""

import ctypes
import os
import sys

LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 0x1000, 0x4000, 0x40000
PR_SET_NO_NEW_PRIVS = 38
_MOUNT_SETATTR = 442  # numbers of system calls, the same on every architecture
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
_MOUNT_ATTR_RDONLY, _AT_FDCWD, _AT_RECURSIVE = 1, -100, 0x8000


def _call(function, *arguments):
    result = getattr(_libc, function)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), function)
    return result


def system_call(number, *arguments) -> int:
    """``syscall(number, ...)`` with whole numbers and pointers; its result."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _call("syscall", ctypes.c_long(number), *wide)


def unshare(flags) -> None:
    """Give this process namespaces of its own."""
    _call("unshare", flags)


def join(namespace, kind) -> None:
    """Enter the namespace that the file descriptor ``namespace`` is open for."""
    _call("setns", namespace, kind)


def no_new_privileges() -> None:
    """From now on no program that this process starts gets more rights than it has."""
    _call("prctl", PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def mount(source, target, kind=None, flags=0, options="") -> None:
    """``mount(2)``; ``kind`` is a type of file system, None to bind or to change flags."""
    _call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        os.fsencode(options) or None,
    )


class _MountAttributes(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns_fd")]


def read_only(path, on=True, below=False) -> None:
    """Make the mount at ``path`` read-only, or writable again; with ``below`` all below it, too."""
    bits = _MountAttributes(**{"set" if on else "clear": _MOUNT_ATTR_RDONLY})
    size = ctypes.sizeof(bits)
    flags = _AT_RECURSIVE if below else 0
    system_call(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, ctypes.byref(bits), size)
