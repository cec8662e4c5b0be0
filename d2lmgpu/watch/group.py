"""The process group that a watched script joins."""

import os
from functools import wraps
from types import ModuleType

from d2lmgpu.process.hangs.log import Log
from d2lmgpu.watch import collectives


class Group:
    """Rank and size of the script's group: those of the environment, until it has ``joined`` one.

    What the group does is written to ``log``, from which the caller sees who waits for whom.
    """

    def __init__(self, log: Log):
        self.rank, self.world = (
            int(os.environ.get(name, d)) for name, d in (("RANK", 0), ("WORLD_SIZE", 1))
        )
        self.joined = False
        self._log = log
        # Kept until the end: with its net a script frees a group of gloo, which then waits for its
        # threads and keeps Python's lock, for which they may wait (pytorch/pytorch#56297).
        self._kept = []

    def listen(self, torch: ModuleType) -> None:
        """See the script join, and what it calls there."""
        self._note_the_joining(torch.distributed)

        def note(operator, arguments, waiting):
            if not waiting:
                self._log.note(*collectives.facts(torch, operator, arguments))

        collectives.listen(torch, note)

    def _note_the_joining(self, dist):
        if not dist.is_available():
            return
        real = dist.init_process_group

        @wraps(real)
        def noted(*args, **kwargs):
            rank, world = (kwargs.get(name, -1) for name in ("rank", "world_size"))
            rank, world = self.rank if rank == -1 else rank, self.world if world == -1 else world
            self._kept.clear()  # a store of an old group would answer with its old addresses
            self._log.start(rank, world, joined=True)
            real(*args, **kwargs)
            self.joined = True
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            self._log.start(self.rank, self.world, joined=True)

        collectives.replace_init(dist, noted)
        make = dist.distributed_c10d._new_process_group_helper

        @wraps(make)
        def made(*args, **kwargs):
            group = make(*args, **kwargs)
            self._kept.append(group)
            return group

        dist.distributed_c10d._new_process_group_helper = made
