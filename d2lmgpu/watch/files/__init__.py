"""What a watched script writes does not reach the reader's files.

Three ways, the first that can be had here: a *view* of the files, in which everything may be done
(``view``); writes *refused* by Linux, while those of Python's functions go to the run's folder
(``landlock``, ``diversion``); and, only if the reader says so, Python's functions alone.
"""

import os
from dataclasses import dataclass

from d2lmgpu.watch.files import kernel, landlock, view

VIEW, REFUSED, NONE = "view", "refused", "none"
SHARED_MEMORY = view.SHARED_MEMORY

REFUSAL = (  # the words where there is no protection
    "What the script writes and removes would be written and removed: {why}. So it does not run. "
    "If it may, on a copy of your files for instance, say so: --unprotected, in a notebook "
    "unprotected=True."
)
READ_ONLY = "its writes go to a view of your files, and there none can be laid over that folder"
OF_OTHERS = (
    "it belongs to another account or group: in a view only some of such files can be changed"
)
NOTES = {  # and where there is less than a view
    REFUSED: "What the script wrote by Python's own functions went to a folder that is removed; "
    "Linux refused it all other writes, but not changes of modes and "
    f"times, nor what lies in {SHARED_MEMORY} ({{why}}).",
    NONE: "What the script wrote by Python's own functions went to a folder that is removed; "
    "whatever else it wrote or removed is written and removed ({why}).",
}


@dataclass(frozen=True)
class Protection:
    """How the files are protected: ``kind`` and, where that is no view, ``why`` there is none."""

    kind: str
    why: str = ""
    made: view.View | None = None

    def enter(self, folder) -> None:
        """Protect this process and all that it starts: before it runs anything of the reader's."""
        if self.made:
            self.made.enter()
        elif self.kind == REFUSED:
            landlock.refuse_writes(but=[folder, SHARED_MEMORY])


def protection(folder, work) -> Protection:
    """The best that can be had for a script in the folder ``work``; changes lie in ``folder``."""
    if not kernel.LINUX:
        return Protection(NONE, "it needs Linux")
    try:
        return Protection(VIEW, made=view.build(folder, work))
    except OSError as error:
        why = f"no view of the files: {error}"
    try:
        landlock.version()
    except OSError as error:
        return Protection(NONE, f"{why}; no Landlock: {error.strerror}")
    if view.is_below(os.path.realpath(work), [SHARED_MEMORY]):
        return Protection(
            NONE, f"{why}; Landlock leaves {SHARED_MEMORY} open, which processes need"
        )
    return Protection(REFUSED, why)
