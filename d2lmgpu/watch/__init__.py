"""A reader's own script, run unchanged in processes that watch it: see ``run``."""

import linecache
import os


class WatchError(ValueError):
    """A script was given that cannot be watched, or devices that are not there."""


class MisuseError(WatchError):
    """What was asked for is not there, or not so: nothing has been run."""


def line_of_code(where, folder) -> str:
    """The line of code at "file:line", seen from ``folder``; empty if it cannot be read."""
    file, _, number = where.rpartition(":")
    return linecache.getline(os.path.join(folder, file), int(number)).strip()
