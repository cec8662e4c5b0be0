"""Reset a notebook: back to the published version, with the reader's own kept beside it.

    python -m d2lmgpu.reset chapters/scratch/mxnet.ipynb

works in a copy of the course that git made, as the hub's launch button makes it. What the reader
wrote is never lost: it is copied first, and the notebook is replaced in one step.
"""

import os
import subprocess
import sys
import time
from pathlib import Path


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
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise ResetError(
            f"{notebook} is in no copy of the course that git made: download it again."
        )
    top = Path(top.decode().strip())
    base = _git(top, "merge-base", "HEAD", "@{upstream}")
    if base is None:
        raise ResetError(f"{top} follows no published branch: open the course from its page again.")
    name = notebook.resolve().relative_to(top.resolve()).as_posix()
    # Of a folder, `git show` would give a listing.
    published = _git(top, "cat-file", "blob", f"{base.decode().strip()}:{name}")
    if published is None:
        raise ResetError(f"{name} is not in the published course that was brought to {top}.")

    copy = None
    if notebook.exists() and notebook.read_bytes() != published:
        copy = notebook.with_suffix(f".mine-{time.strftime('%Y%m%d-%H%M%S')}{notebook.suffix}")
    fresh = notebook.with_name(f".{notebook.name}.published")
    try:
        notebook.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(published)
        if copy:
            with copy.open("xb") as file:  # an older copy is never overwritten
                file.write(notebook.read_bytes())
        os.replace(fresh, notebook)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ResetError(
            f"{name} is as it was: {error.strerror}. Free some space or rename."
        ) from error
    return copy


def _git(folder, *arguments):
    """What git answers, or None if it fails."""
    answer = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)
    return answer.stdout if answer.returncode == 0 else None


def main():
    if len(sys.argv) != 2:
        sys.exit("which notebook? python -m d2lmgpu.reset chapters/....ipynb")
    try:
        copy = reset(sys.argv[1])
    except ResetError as error:
        sys.exit(str(error))
    print(f"{sys.argv[1]} is the published version again: close it and open it anew.")
    if copy:
        print(f"Yours is in {copy.name}.")


if __name__ == "__main__":
    main()
