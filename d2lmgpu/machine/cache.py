"""The folder in which the course keeps what is made or fetched once."""

import os
from pathlib import Path


def cache() -> Path:
    """``D2LMGPU_CACHE``, else ``d2lmgpu`` in the user's own cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("D2LMGPU_CACHE") or Path(base, "d2lmgpu"))
