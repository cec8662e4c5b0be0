"""Chapters as tests: ``pytest --nbval chapters/...``, on little data, device names ignored.

With ``--executed`` the book is made of what they put out; what ``make book`` has run is compared.
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

        book, executed = program("book"), program("executed")
        if book.turn_to_little_data():
            book.drop_stale_build()
            config.pluginmanager.register(executed.Executed(book.KEPT))
        else:
            config.pluginmanager.register(executed.Kept(book.KEPT))
        os.environ.update(book.IN_THE_BOOK)
    os.environ.setdefault("D2LMGPU_PROFILE", "test")
