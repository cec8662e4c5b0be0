"""A reader's own script, run unchanged in processes that watch it: see ``run``."""


class WatchError(ValueError):
    """A script was given that cannot be watched, or devices that are not there."""
