"""Chapters as tests: ``pytest --nbval chapters/...``, on little data, device names ignored."""

import os
from pathlib import Path


def pytest_configure(config):
    os.environ.setdefault("D2LMGPU_PROFILE", "test")
    here = Path(__file__).resolve().parent
    config.option.nbval_sanitize_with = str(here.parent / "tests" / "notebooks" / "sanitize.cfg")
