"""The page's script; a rank kills itself where and when a file asks for it.

FOLDER, the first argument, may get a file ``checkpoint`` (written, not yet renamed) or
``allreduce`` (the rank's own part is on the way). Who removes the file is the one that dies.
"""

import os
import runpy
import signal
import sys
from pathlib import Path

import torch.distributed as dist

SCRIPT = Path(__file__).parents[2] / "chapters/clusters/train_elastic.py"


def asked(place):
    try:
        os.unlink(os.path.join(FOLDER, place))
    except FileNotFoundError:
        return False
    return True


def replace(part, path):
    if str(path).endswith(".safetensors") and asked("checkpoint"):
        os.kill(os.getpid(), signal.SIGKILL)
    os_replace(part, path)


def all_reduce(*arguments, **options):
    if asked("allreduce"):
        dist_all_reduce(*arguments, **options, async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)
    dist_all_reduce(*arguments, **options)


if __name__ == "__main__":
    FOLDER = sys.argv.pop(1)
    os_replace, os.replace = os.replace, replace
    dist_all_reduce, dist.all_reduce = dist.all_reduce, all_reduce
    runpy.run_path(str(SCRIPT), run_name="__main__")
