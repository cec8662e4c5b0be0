"""Reset a notebook: back to the published version, with the reader's own kept beside it.

    d2lmgpu reset chapters/scratch/mxnet.ipynb

works in a copy of the course that git made, as the hub's launch button makes it. What the reader
wrote is never lost: it is copied first, and the notebook is replaced in one step.
"""

import subprocess
import time
from pathlib import Path

from d2lmgpu.machine.atomic_write import save


class ResetError(ValueError):
    """Why a notebook cannot be reset, and what to do."""


def reset(notebook) -> Path | None:
    """Replace the file ``notebook`` by its published version.

    Returns the copy of what was there before, ``name.mine-<date>-<time>.ipynb`` beside it, or None
    if there was nothing to keep. The version is the one that the launch button brought last: the
    next press then sees no edit of the reader's and brings the newest. No network is needed.
    Raises ``ResetError``; the notebook is then as it was.
    """
    notebook = Path(notebook).absolute()
    folder = next((parent for parent in notebook.parents if parent.is_dir()), Path("/"))
    lost = f"{notebook} is in no copy of the course from git: download it again."
    top = Path(_git(folder, "rev-parse", "--show-toplevel", otherwise=lost).decode().strip())
    astray = f"{top} follows no published branch: open the course from its page again."
    base = _git(top, "merge-base", "HEAD", "@{upstream}", otherwise=astray).decode().strip()
    name = notebook.resolve().relative_to(top.resolve()).as_posix()
    unknown = f"{name} is not in the published course that was brought to {top}."
    # Of a folder, `git show` would give a listing.
    published = _git(top, "cat-file", "blob", f"{base}:{name}", otherwise=unknown)
    copy = None
    if notebook.exists() and notebook.read_bytes() != published:
        copy = notebook.with_suffix(f".mine-{time.strftime('%Y%m%d-%H%M%S')}{notebook.suffix}")
    try:
        if copy:
            with copy.open("xb") as file:  # an older copy is never overwritten
                file.write(notebook.read_bytes())
        save(notebook, published)
    except OSError as error:
        why = f"{error.strerror}. Free some space or rename."
        raise ResetError(f"{name} is as it was: {why}") from error
    return copy


def _git(folder, *arguments, otherwise) -> bytes:
    """What git answers; ResetError says ``otherwise`` if it fails."""
    answer = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)
    if answer.returncode:
        raise ResetError(otherwise)
    return answer.stdout
