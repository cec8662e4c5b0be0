"""Chapters as tests: ``pytest --nbval chapters/...``, on little data, device names ignored.

With ``--executed`` the book is made of what they put out; what ``make book`` has run is compared.
With ``-n`` each chapter is one worker's: its cells need each other.
"""

import os
from pathlib import Path

import nbval.kernel
import pytest

ROOT = Path(__file__).resolve().parents[1]
LITTLE_DATA = pytest.StashKey[bool]()


def pytest_addoption(parser):
    parser.addoption("--executed", action="store_true", help="run chapters once for nbval and book")


def pytest_configure(config):
    os.environ["D2LMGPU_PREDICTIONS"] = os.devnull  # none of the reader's own is touched
    config.option.nbval_sanitize_with = str(ROOT / "tests" / "notebooks" / "sanitize.cfg")
    from programs import program

    nbval.kernel.KernelManager = program("jupyter_kernels").KernelManager
    if config.option.executed:
        book, plugins = program("book"), program("nbval_plugins")
        cache = program("chapter_cache")
        kept = cache.ChapterCache(ROOT)
        if hasattr(config, "workerinput"):
            little = config.workerinput["little_data"]
        else:
            little = config.stash[LITTLE_DATA] = book.turn_to_little_data()
            if little:
                kept.begin()
        plugin = plugins.Executed if little else plugins.Compared
        config.pluginmanager.register(plugin(kept))
        os.environ.update(cache.IN_THE_BOOK)
    os.environ.setdefault("D2LMGPU_PROFILE", "test")


def pytest_collectstart(collector):
    """Standard error is no claim of a cell's: it has times and numbers of processes."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr",)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """A worker of pytest-xdist inherits this profile, by which it would decide anew."""
    node.workerinput["little_data"] = node.config.stash.get(LITTLE_DATA, True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """pytest-xdist hands out single tests, if nothing is said: cells without those before them."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
