"""Freed memory stays in the process: the second use of it costs no page faults."""

import os
import platform
import subprocess
import sys

import pytest
from soaking import sample

PROGRAM = """
import ctypes, resource, threading
{keep}
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


BACKENDS = ["import d2lmgpu.torch", "import d2lmgpu.mxnet"]


def page_faults(keep, **environ):
    """Of the second use of 50 MB in a thread."""
    program = PROGRAM.format(keep=keep, size=50 * 2**20)
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, capture_output=True, check=True, env=os.environ | environ)
    return int(out.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is told")
@pytest.mark.parametrize("backend", sample(1, BACKENDS))
def test_a_block_that_was_freed_is_used_again(backend):
    without = page_faults("")
    assert page_faults(backend) * 5 < without
    assert page_faults(backend, MALLOC_TOP_PAD_="0") * 2 > without  # settings of the reader's own
