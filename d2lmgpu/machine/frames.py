"""Where the threads of this process are."""

from sys import _current_frames

from d2lmgpu.machine.imports import collector_paused


def current_frames() -> dict:
    """``sys._current_frames()``, the topmost frame of each thread, also where threads end.

    Python before 3.11.9 holds a lock meanwhile. If it collects garbage then, what runs on that
    lets another thread go on, which may end: that one waits for the lock, and keeps Python's own
    (python/cpython#106883).
    """
    with collector_paused():
        return _current_frames()
