"""The supervisor of a first watched run, which has imported PyTorch: later runs are forked by it.

    the caller → a guard → the first supervisor → a guard → a supervisor → a worker → …

To import PyTorch takes as long as all else of a short run. So the first supervisor imports it while
the other ranks do the same, forks rank 0, and stays when its run has ended.
"""

import contextlib

from d2lmgpu.process.child import Child
from d2lmgpu.process.forks import Forks, can_fork
from d2lmgpu.watch import ranks


class Template:
    """Supervisors of several runs of one script; as a context manager it leaves nothing of them."""

    def __init__(self):
        self._stack, self._forks = contextlib.ExitStack(), None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()

    def supervisor(self) -> contextlib.AbstractContextManager[Child]:
        """A context manager: the ``Child`` of the next run."""
        if not can_fork():
            return Child(ranks.COMMAND, [], {})
        if self._forks is None:
            self._forks = self._stack.enter_context(contextlib.closing(Forks()))
            with self._forks.theirs as theirs:
                place = theirs.fileno()
                first = Child(ranks.COMMAND, [str(place)], {}, handed=[place])
            return contextlib.nullcontext(self._stack.enter_context(first))
        try:
            return Child(ranks.COMMAND, [], {}, fork_server=self._forks)
        except ConnectionError:  # the first run was ended from outside
            return Child(ranks.COMMAND, [], {})
