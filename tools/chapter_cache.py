"""Chapters that were run, with all that they put out and what that depends on.

They lie in ``_build``, in jupyter-cache, which finds them by the code of their cells alone. A
chapter is taken from there if nothing has changed of what ``dependencies.py`` noted. The settings
are those of all of them: with others ``_build`` begins anew.
"""

import hashlib
import os
import platform
import shutil
from pathlib import Path

import dependencies
import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from jupyter_cache.cache.db import NbCacheRecord

from d2lmgpu.data import datasets
from d2lmgpu.machine.hardware import num_cores

IN_THE_BOOK = {
    "D2LMGPU_BOOK": "1",  # labs are pages of HTML, without live widgets
    # Names that the newest PyTorch has for what the older ones, which the pages run on too, call
    # otherwise; and that a loader has more workers than the machine which makes the book has cores.
    # In a notebook the reader sees these warnings.
    "PYTHONWARNINGS": "ignore::FutureWarning,ignore:This DataLoader will create:UserWarning",
}
SETTINGS = ["D2LMGPU_PROFILE", "D2LMGPU_IMAGES", "D2LMGPU_DEVICES", "D2LMGPU_DATA"]


class ChapterCache:
    """The chapters that were run, in ``root/_build``."""

    def __init__(self, root: Path):
        self.root, self.build = root, root / "_build"
        self.noted = self.build / f"noted-{os.getpid()}"  # by what runs now

    @property
    def cache(self) -> JupyterCacheAbstract:
        return get_cache(self.build / ".jupyter_cache")

    def key(self) -> str:
        """A hash of what all chapters depend on: settings, packages, cores, the images."""
        settings = [os.environ.get(name) for name in SETTINGS]
        images = [datasets.describe(name) for name in ("fashion-mnist", "mnist")]
        parts = [platform.python_version(), num_cores(), settings, images]
        packages = (self.root / "requirements.txt").read_bytes()
        return hashlib.sha256(repr(parts).encode() + packages).hexdigest()

    def is_of_these_settings(self) -> bool:
        stamp = self.build / "key"
        return stamp.exists() and stamp.read_text(encoding="utf-8") == self.key()

    def begin(self) -> None:
        """Drop all that is kept of other settings, and chapters of which something has changed."""
        if not self.is_of_these_settings():
            shutil.rmtree(self.build, ignore_errors=True)
            self.build.mkdir()
            (self.build / "key").write_text(self.key(), encoding="utf-8")
        for record in self.cache.list_cache_records():
            if self.is_stale(record):
                self.cache.remove_cache(record.pk)

    def is_stale(self, record: NbCacheRecord) -> bool:
        """Whether a chapter failed, or something that it depends on is not what it was."""
        noted = record.data.get("depends_on")
        if noted is None or record.data.get("failure"):
            return True
        return noted != dependencies.digests(noted, self.root)

    def find(self, notebook: nbformat.NotebookNode) -> NbCacheRecord | None:
        """What was kept of a chapter with the same code."""
        try:
            return self.cache.match_cache_notebook(notebook)
        except KeyError:
            return None

    def environment(self) -> dict[str, str]:
        """What is added to the environment of a chapter that is run to be kept."""
        return IN_THE_BOOK | dependencies.environment(self.noted)

    def put(self, notebook, path: Path, seconds: float, began: float, failure: str = "") -> None:
        """Keep a chapter that has run since ``began`` and took so many ``seconds``."""
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        noted = dependencies.noted(self.noted, self.root)
        paths = dependencies.dependencies(path, code, noted, self.root)
        data = {
            "execution_seconds": seconds,
            "depends_on": dependencies.digests(paths, self.root, began),
            "failure": failure,
        }
        self.cache.cache_notebook_bundle(
            CacheBundleIn(notebook, str(path), data=data), check_validity=False, overwrite=True
        )
