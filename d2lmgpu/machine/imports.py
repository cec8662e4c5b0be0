"""Imports of large packages, faster."""

import contextlib
import gc


@contextlib.contextmanager
def collector_paused():
    """Import in here: an import leaves little garbage, and looks for it a third of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
