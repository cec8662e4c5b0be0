"""Opens JupyterLab in a copy of the course that is the reader's own, on this machine only.

    python tools/lab.py [options of JupyterLab]

The copy is ``my-copy/``. As on the hub, nbgitpuller brings it to what the course is now and keeps
whatever the reader has changed: the course's own files stay as they are, for git and for the book.
"""

import os
import subprocess
import sys
from pathlib import Path

from jupyter_kernels import SERVER_OPTION
from jupyterlab.labapp import main as jupyterlab
from nbgitpuller.pull import GitPuller

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "hub"), str(ROOT / "hub" / "learner")]
import course  # noqa: E402

MINE, REPOSITORY = ROOT / "my-copy", ROOT / ".cache" / "lab" / "course.git"
BRANCH = "main"


def update() -> None:
    """Bring the reader's copy to what the course is now. SystemExit says why it cannot be."""
    lines = []
    try:
        course.copy(REPOSITORY, BRANCH)
        lines.extend(GitPuller(REPOSITORY.as_uri(), str(MINE), branch=BRANCH).pull())
    except (course.CourseError, OSError, subprocess.CalledProcessError) as error:
        why = f"{error}\n{''.join(lines)}"
        raise SystemExit(f"{MINE} could not be brought up to date: {why}") from None


def main(*options: str) -> None:
    update()
    print(f"Your own copy of the course: {MINE}. What you change there stays.")
    print("A chapter comes back by `d2lmgpu reset chapters/...ipynb` in a terminal there.")
    # There, and in a notebook's cells that begin with "!".
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    page = "--LabApp.default_url=/lab/tree/chapters/intro.md"
    # Root may start it: this server is for the same account on the same machine.
    jupyterlab(
        [
            "--ip=127.0.0.1",
            f"--notebook-dir={MINE}",
            page,
            SERVER_OPTION,
            "--allow-root",
            "--ServerApp.jpserver_extensions=notebook_metadata=True",
            *options,
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
