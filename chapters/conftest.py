"""Chapters as tests: ``pytest --nbval chapters/...``, on little data, device names ignored."""

import os
from pathlib import Path


def pytest_configure(config):
    os.environ.setdefault("D2LMGPU_PROFILE", "test")
    os.environ["D2LMGPU_PREDICTIONS"] = os.devnull  # none of the reader's own is touched
    here = Path(__file__).resolve().parent
    config.option.nbval_sanitize_with = str(here.parent / "tests" / "notebooks" / "sanitize.cfg")
