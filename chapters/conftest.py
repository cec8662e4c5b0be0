"""Chapters as tests: ``pytest --nbval chapters/...``, on little data, device names ignored.

With ``--executed`` they run as ``make book`` runs them, which then finds what they have put out.
"""

import os
from pathlib import Path


def pytest_addoption(parser):
    parser.addoption("--executed", action="store_true", help="run chapters once for nbval and book")


def pytest_configure(config):
    os.environ["D2LMGPU_PREDICTIONS"] = os.devnull  # none of the reader's own is touched
    here = Path(__file__).resolve().parent
    config.option.nbval_sanitize_with = str(here.parent / "tests" / "notebooks" / "sanitize.cfg")
    if config.option.executed:
        from programs import program

        book = program("book")
        book.drop_stale_build()
        os.environ.update(book.IN_THE_BOOK)
        config.pluginmanager.register(program("executed").Executed(book.KEPT))
    else:
        os.environ.setdefault("D2LMGPU_PROFILE", "test")
