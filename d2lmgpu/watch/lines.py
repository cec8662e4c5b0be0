"""Which line of the reader's own code it is that calls something."""

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps

from d2lmgpu.watch import ranks

OURS = os.path.join(ranks.ROOT, "d2lmgpu", "")


class Lines:
    """The lines of the reader's code: of the file ``own``, and of those beside and below it.

    ``set`` has what the script sets of its process, and the line that does, see ``note``.
    """

    def __init__(self, own):
        self.own = own
        self.set = {}
        self._folder = os.path.join(os.path.dirname(own) or own, "")
        self._files = {}  # file -> whether it is the reader's

    def is_own(self, file) -> bool:
        """Whether a file is the reader's."""
        if file not in self._files:  # it is asked of each frame of each sample
            below = file.startswith(self._folder) and "site-packages" not in file
            self._files[file] = (below or file == self.own) and not file.startswith(OURS)
        return self._files[file]

    def where(self, frames=None) -> str | None:
        """ "file:line" of the innermost line of the reader's own code; None if there is none.

        frames: from the outside in, (file, line) each; those of the calling thread by default.
        """
        if frames is None:
            frames = [
                (f.f_code.co_filename, line) for f, line in traceback.walk_stack(sys._getframe(1))
            ][::-1]
        for file, line in reversed(frames):
            if self.is_own(file):
                return f"{os.path.relpath(file, self._folder)}:{line}"
        return None

    def caller(self, *through) -> str | None:
        """ "file:line" of the reader's if it calls this package, and no library of its does.

        through: folders of libraries that may stand between them.
        """
        for frame, line in traceback.walk_stack(sys._getframe(1)):
            if not frame.f_code.co_filename.startswith((OURS, *through)):
                return self.where([(frame.f_code.co_filename, line)])
        return None

    def note(self, owner, name, what: Callable) -> None:
        """From now on keep in ``set[what(*args)]`` the line that calls ``owner.name(*args)``."""
        if (real := getattr(owner, name, None)) is None:
            return

        @wraps(real)
        def noted(*args, **kwargs):
            if (what_set := what(*args, **kwargs)) and (line := self.where()):
                self.set[what_set] = line
            return real(*args, **kwargs)

        setattr(owner, name, noted)
