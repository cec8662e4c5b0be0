"""What a run tells the lab that started it: one line of JSON an event."""

import contextlib
import json
import os
import time

VARIABLE = "D2LMGPU_EVENTS"
_last, _pipes = {}, {}


def report(event: str, every: float = 0.0, **fields) -> None:
    """Write ``event`` with its ``fields`` to the lab; does nothing outside of one.

    With ``every``, events of this name that follow within so many seconds are left out. A field may
    be a function: it is called only for an event that is written. Of several processes that train
    together only rank 0 reports.
    """
    path = os.environ.get(VARIABLE)
    if path is None or os.environ.get("RANK", "0") != "0":
        return
    now = time.monotonic()
    if now - _last.get(event, -every) < every:
        return
    _last[event] = now
    fields = {name: value() if callable(value) else value for name, value in fields.items()}
    line = json.dumps({"event": event, "time": now, **fields}, default=_plain)
    os.write(_open(path), line.encode() + b"\n")


def pass_on(event: dict) -> None:
    """Report ``event``, which a worker on another host has reported, as if it had happened here."""
    report(**{name: value for name, value in event.items() if name != "time"})


def _plain(value):
    """A number of NumPy or of a framework as Python's own, anything else as it prints."""
    return value.item() if hasattr(value, "item") else str(value)


def _open(path):
    """A descriptor of the pipe, in which lines of up to 4 KiB are never mixed up.

    A new one where the run has closed the last: its number may be another file's by now.
    """
    with contextlib.suppress(KeyError, OSError):
        pipe, status = _pipes[path]
        if os.path.samestat(status, os.fstat(pipe)):
            return pipe
    pipe = os.open(path, os.O_WRONLY)
    _pipes[path] = pipe, os.fstat(pipe)
    return pipe
