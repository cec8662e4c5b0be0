"""How a run ended, in words."""

import re
import signal
from dataclasses import dataclass, field

from d2lmgpu.launch import signal_name

CONTROL = re.compile(r"[^\n\t -~\u00a0-\U0010ffff]")
LINES = 25


@dataclass
class Outcome:
    """``status`` is 'finished', 'stopped' or 'failed'; ``message`` says it in a sentence or two.

    ``result`` is what ``train`` returned (num_samples, accuracies, seconds), ``log`` the end of
    what the run printed, ``traceback`` that of its error.
    """

    status: str
    message: str
    log: str = ""
    traceback: str = ""
    result: dict = field(default_factory=dict)


def outcome_of(events, why, log):
    """The Outcome of a worker that has ended.

    ``events`` has the last event of each name, ``why`` is the sentence of whoever stopped the run
    (empty if nobody did), ``log`` the bytes that the run printed last.
    """
    said, code = events.get("outcome", {}), events["exit"]["code"]
    log = readable(log)
    if said.get("status") == "finished":
        return Outcome("finished", "Finished.", log, result=said)
    if why:
        return Outcome("stopped", why, log)
    if said.get("status") == "stopped":
        return Outcome("stopped", "The run was interrupted (KeyboardInterrupt).", log)
    if said:
        return Outcome("failed", said["message"], log, said["traceback"])
    return Outcome("failed", ended_early(code), log)


def ended_early(code):
    """What it means that a worker ended with ``code`` and without a word."""
    if code is None:
        return "The process that watches over the run was killed, and the run with it. Run again."
    if code >= 0:
        return f"The run's process ended by itself, with exit code {code}, before train returned."
    name = signal_name(-code)
    if code == -signal.SIGKILL:
        return (
            f"The run was killed from outside ({name}). Mostly that is the system, when memory "
            "runs out: try a smaller batch or fewer devices."
        )
    return f"The run crashed ({name}): an error in compiled code. The log's end may say where."


def readable(log):
    """The last lines of what a run printed, whatever bytes it printed."""
    text = log.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(CONTROL.sub("\ufffd", text).rstrip().split("\n")[-LINES:])
