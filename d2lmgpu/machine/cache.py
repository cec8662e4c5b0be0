"""The folders in which the course keeps what is made or fetched once."""

import os
from pathlib import Path


def cache() -> Path:
    """What is made or fetched once: ``D2LMGPU_CACHE``, else in the user's own cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("D2LMGPU_CACHE") or Path(base, "d2lmgpu"))


def predictions() -> Path:
    """What the reader predicts: ``D2LMGPU_PREDICTIONS``, else in the user's own data folder."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(os.environ.get("D2LMGPU_PREDICTIONS") or Path(base, "d2lmgpu", "predictions"))
