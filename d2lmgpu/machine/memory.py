"""Keep freed memory in the process, for a framework that asks anew for every activation."""

import ctypes
import os
import platform

# Of glibc's malloc.h, mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Tell glibc's malloc to reuse what is freed, at any size, instead of returning it.

    By default arrays of some megabytes come from the system and go back to it at each use, and the
    system fills them with zeros page by page: a quarter of a LeNet update in PyTorch on one device,
    and less of it on two, so that two were more than twice as fast. Call it before threads start:
    the single arena is for those that come after. Without glibc, and where the environment has
    settings of its own (``MALLOC_…``), it does nothing.
    """
    own = [name for name in os.environ if name.startswith("MALLOC_")]
    if platform.libc_ver()[0] == "glibc" and not own:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, NEVER)
        mallopt(M_TRIM_THRESHOLD, NEVER)
