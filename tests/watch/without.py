"""A process without some of Linux's system calls, as an older kernel or a container has them."""

import ctypes
import os
import struct

ARCHITECTURES = {"x86_64": {"unshare": 272, "mount": 165}, "aarch64": {"unshare": 97, "mount": 40}}
CALLS = ARCHITECTURES[os.uname().machine] | {"mount_setattr": 442, "landlock": 444}

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def without(calls):
    """From now on this process, and what it starts, gets an error of ``calls`` {name: errno}."""
    rules = [(LOAD, 0, 0, 0)]  # the number of the system call
    for name, number in calls.items():
        rules += [(JUMP_IF_EQUAL, 0, 1, CALLS[name]), (RETURN, 0, 0, ERROR | number)]
    rules.append((RETURN, 0, 0, ALLOW))
    program = _Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0
