"""Freed memory stays in the process: the second use of it costs no page faults."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, threading
from d2lmgpu.machine.memory import keep_freed_memory

if {keep}:
    keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p

def use():
    block = libc.malloc(ctypes.c_size_t({size}))
    ctypes.memset(block, 1, {size})
    libc.free(ctypes.c_void_p(block))

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


def page_faults(keep):
    """Of the second use of 50 MB in a thread."""
    program = PROGRAM.format(keep=keep, size=50 * 2**20)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return int(out.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is told")
def test_a_block_that_was_freed_is_used_again():
    assert page_faults(keep=True) * 5 < page_faults(keep=False)
