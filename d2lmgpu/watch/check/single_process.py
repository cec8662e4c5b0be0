"""A script that starts its own processes by ``mp.spawn``, with one in place of several."""

import copy
import importlib
import os
from functools import wraps

from d2lmgpu.watch.collectives import replace_init

COUNTS = ("world", "proc", "gpu")  # parts of the names under which options hold how many there are


class SingleProcess:
    """``forced``: whether the script asked for a group of several and was given one of one.

    Then it may count several ranks where there is one, and only if it trains as they do anything
    can be told.
    """

    def __init__(self, watch):
        self.forced = False
        module = importlib.import_module("torch.multiprocessing.spawn")
        module.start_processes = _one_process(module.start_processes)
        watch.torch.multiprocessing.start_processes = module.start_processes
        if watch.spawned:
            self._one_rank(watch.torch.distributed)

    def _one_rank(self, dist):
        real = dist.init_process_group

        @wraps(real)
        def alone(*args, **kwargs):
            number = kwargs.get("world_size", int(os.environ.get("WORLD_SIZE", "1")))
            self.forced = number > 1
            return real(*args, **kwargs | {"world_size": 1, "rank": 0})

        replace_init(dist, alone)

    def report(self) -> dict[str, bool]:
        return {"forced": self.forced}


def _one_process(real):
    @wraps(real)
    def start(fn, args=(), nprocs=1, *more, **kwargs):
        return real(fn, tuple(_counted(argument, nprocs) for argument in args), 1, *more, **kwargs)

    return start


def _counted(value, number):
    """An argument, with 1 in place of how many processes there are."""
    if type(value) is int:
        return 1 if value == number else value
    if not hasattr(value, "__dict__") or callable(value):
        return value
    value = copy.copy(value)
    for name, held in vars(value).items():
        if type(held) is int and held == number and any(part in name for part in COUNTS):
            setattr(value, name, 1)
    return value
