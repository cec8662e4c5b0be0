"""Imports of large packages, faster."""

import contextlib
import gc
import importlib
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Import in here: an import leaves little garbage, and looks for it a third of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def import_once(modules) -> None:
    """Import them in a process that will fork."""
    with collector_paused():
        for name in modules:
            importlib.import_module(name)
        gc.freeze()  # nor need what it forks look through, and so copy, what they share
