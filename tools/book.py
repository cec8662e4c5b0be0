"""Builds the book: every chapter executed, no warning, no failed cell.

Executed chapters are kept in ``_build``, where they are found again by the notebook's text alone.
They depend on more than that: ``_build`` is dropped when anything else that they use has changed.
`make test` lets nbval run them on little data, and what they put out is kept there, too
(``executed.py``), unless ``make book`` has run them. ``--tested`` builds the book of either.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
KEPT = BUILD / ".jupyter_cache"
IN_THE_BOOK = {"D2LMGPU_BOOK": "1"}  # labs are pages of HTML, without live widgets
USED = ["requirements.txt", "d2lmgpu/**/*", "records/**/*", "chapters/**/*.py", "tools/book.py"]
SETTINGS = ["D2LMGPU_PROFILE", "D2LMGPU_IMAGES", "D2LMGPU_DEVICES", "D2LMGPU_DATA"]


def key() -> str:
    """A hash of everything but the chapters themselves that an executed chapter depends on."""
    settings = [os.environ.get(name) for name in SETTINGS]
    digest = hashlib.sha256(repr([platform.python_version(), os.cpu_count(), settings]).encode())
    for path in sorted(path for pattern in USED for path in ROOT.glob(pattern)):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def is_kept() -> bool:
    """Whether the chapters in ``_build`` were executed with all of this as it is."""
    stamp = BUILD / "key"
    return stamp.exists() and stamp.read_text(encoding="utf-8") == key()


def turn_to_little_data() -> bool:
    """Choose the tests' profile, unless `make book` has run the chapters in its own; whether so."""
    little = os.environ.get("D2LMGPU_PROFILE") == "test" or not is_kept()
    if little:
        os.environ["D2LMGPU_PROFILE"] = "test"
    return little


def drop_stale_build() -> None:
    if not is_kept():
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir()
        (BUILD / "key").write_text(key(), encoding="utf-8")


def main() -> int:
    for tool in ("page_images.py", "first_cells.py"):
        subprocess.run([sys.executable, Path(__file__).with_name(tool)], cwd=ROOT, check=True)
    if "--tested" in sys.argv:
        turn_to_little_data()
    drop_stale_build()
    # This page shows the seconds of all others, so it is made anew with any of them.
    (BUILD / ".doctrees" / "chapters" / "reference" / "status.doctree").unlink(missing_ok=True)
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    status = subprocess.run(
        [jupyter_book, "build", ".", "-W", "-n", "--keep-going"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        env=os.environ | IN_THE_BOOK,
    ).returncode
    if status:
        # Sphinx warns only about pages that it reads: without these the next build warns again.
        shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
        print("The book was not built: see the warnings above.", file=sys.stderr)
    else:
        print(f"The book is built: {(BUILD / 'html' / 'index.html').as_uri()} (or: make serve)")
    return status


if __name__ == "__main__":
    sys.exit(main())
