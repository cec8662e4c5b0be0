"""Where no view can be had: Linux refuses all writes but those below some folders (Landlock).

It needs no root, holds for the process, what it starts and their compiled code, and is for good.
It does not hold modes, owners and times of files nor, before Linux 6.2, that none is cut short.

Source: the kernel's Documentation/userspace-api/landlock.rst. Linux 5.13 or later.
"""

import ctypes
import os
import stat

from d2lmgpu.watch.files import kernel

WRITE_FILE, REFER, TRUNCATE = 1 << 1, 1 << 13, 1 << 14
CHANGES = WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # remove and make, of each kind
SINCE = {2: REFER, 3: TRUNCATE}  # the version from which on there is such a right
_PATH_BENEATH, _VERSION = 1, 1


class _Rights(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Which version of Landlock this kernel has. Raises OSError without one."""
    return kernel.system_call(kernel.LANDLOCK_CREATE_RULESET, None, 0, _VERSION)


def refuse_writes(but) -> None:
    """From now on this process, and what it starts, can write below the folders ``but`` alone.

    Devices that are no disks can be written to as before.
    """
    rights = CHANGES | sum(right for since, right in SINCE.items() if version() >= since)
    handled = _Rights(rights)
    rules = kernel.system_call(
        kernel.LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0
    )
    try:
        for folder in but:
            _allow(rules, folder, rights)
        for entry in os.scandir("/dev"):
            if entry.is_dir() or stat.S_ISCHR(entry.stat().st_mode):
                _allow(rules, entry.path, WRITE_FILE)
        kernel.no_new_privileges()
        kernel.system_call(kernel.LANDLOCK_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules, path, rights):
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = ctypes.byref(_Beneath(rights, parent))
        kernel.system_call(kernel.LANDLOCK_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(parent)
