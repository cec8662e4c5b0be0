"""How a run ended: the numbers that ``train`` returned, and its end in words."""

import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, fields
from math import inf

from d2lmgpu.machine.checks import is_real
from d2lmgpu.process.child import end_in_words
from d2lmgpu.process.output import cut
from d2lmgpu.records.run import Run

CONTROL = re.compile(r"[^\n\t -~\u00a0-\U0010ffff]")
LINES, LINE = 25, 400  # of the log, and the bytes of each at its head and its tail
ROUNDING = 1e-6  # by which a mean of float32 may be above 1
NOTHING = "train returned None, so no accuracy is known: let it return a Run, or a dict."
MISSING = {"num_samples": None, "accuracies": [], "seconds": []}
ALLOWED = (
    "The lab takes nothing (None), or an object or a dict with num_samples, accuracies and "
    "seconds, such as a Run: num_samples is a whole number above 0; accuracies and seconds are "
    "lists of one number an epoch, finite and not below 0, and accuracies are not above 1."
)
KNOWN = {field.name for field in fields(Run)}  # the lab knows the others already


@dataclass
class Outcome:
    """``status`` is 'finished', 'stopped' or 'failed'; ``message`` says it in a sentence or two.

    ``result`` is what ``train`` returned (num_samples, accuracies, seconds), ``log`` the end of
    what the run printed in so many ``lines``, ``traceback`` that of its error.
    """

    status: str
    message: str
    log: str = ""
    lines: int = 0
    traceback: str = ""
    result: dict = field(default_factory=dict)


def outcome_of_return(returned) -> dict:
    """The ``outcome`` event of a run of which ``train`` returned this.

    Its numbers are attributes of an object or entries of a dict. Numbers that no run can have make
    the outcome a failure, and so does what would train only later. Of anything else, such as a net
    or numbers without names, ``note`` says that it is not shown.
    """
    kind = type(returned).__name__
    if isinstance(returned, (Iterator, AsyncIterator, Awaitable)):
        return failed(
            f"train returned a {kind} and has not trained: that only runs when somebody asks it. "
            "Let train do the work itself, without yield or await, and return at its end."
        )
    values = returned
    if not isinstance(returned, dict):
        values = {name: getattr(returned, name) for name in MISSING if hasattr(returned, name)}
    numbers = {}
    for name, missing in MISSING.items():
        value = values.get(name, missing)
        try:
            most = 1 if name == "accuracies" else inf
            numbers[name] = count(value) if name == "num_samples" else one_an_epoch(value, most)
        except Exception as error:
            value = cut(f"{value!r}", 200, 100)
            why = f"{str(error).rstrip('.')}."  # it may be Python's or NumPy's
            return failed(f"train returned {name}={value}, which cannot be: {why} {ALLOWED}")
    note = ""
    if left := [str(name) for name in values if name not in KNOWN]:
        note = f"Of the dict that train returned, {', '.join(left)} is not shown. {ALLOWED}"
    elif returned is None:
        note = NOTHING
    elif not values:
        note = f"Nothing of what train returned (of type {kind}) is shown. {ALLOWED}"
    return {"status": "finished", **numbers, "note": note}


def failed(message, traceback="") -> dict[str, str]:
    """The ``outcome`` event of a run that failed."""
    message = cut(message, 6000, 6000)  # which may be that of a LaunchError
    return {"status": "failed", "message": message, "traceback": traceback}


def count(value) -> int | None:
    """A number of examples."""
    if value is None:
        return None
    if int(value) != value or value < 1 or isinstance(value, bool):
        raise ValueError("it is no whole number above 0.")
    return int(value)


def one_an_epoch(values, most) -> list[float]:
    """Numbers of the epochs, as Python's own, of which none is above ``most``."""
    if isinstance(values, (Mapping, Set)):
        raise TypeError(f"a {type(values).__name__} has no order of epochs.")
    if not isinstance(values, Iterable):
        raise TypeError("it is no list.")
    numbers = [float(value + 0.0) for value in values]  # no text, which float would read
    if wrong := [number for number in numbers if not is_real(number, 0)]:
        raise ValueError(f"{wrong[0]} is not finite or below 0.")
    if wrong := [number for number in numbers if number > most + ROUNDING]:
        per_cent = f": give {wrong[0] / 100:g} for {wrong[0]:g} %" if wrong[0] <= 100 else ""
        raise ValueError(f"{wrong[0]:g} is above {most}{per_cent}.")
    return numbers


def outcome_of(own, code, why, printed) -> Outcome:
    """The Outcome of a worker that has ended.

    ``own`` is its own event ``outcome``, {} without one, ``code`` its exit code, ``why`` the
    sentence of whoever stopped the run, ``printed`` the Bounded output.
    """
    log = readable(printed.text()), printed.lines
    if own.get("status") == "finished":
        return Outcome("finished", "Finished.", *log, result=own)
    if why:
        return Outcome("stopped", why, *log)
    if own.get("status") == "stopped":
        return Outcome("stopped", "The run was interrupted (KeyboardInterrupt).", *log)
    if own:
        return Outcome("failed", own["message"], *log, own["traceback"])
    if code is None:
        words = "The process that watches over the run was killed, and the run with it. Run again."
    else:
        words = f"The run's process {end_in_words(code)}."
    return Outcome("failed", words, *log)


def readable(log) -> str:
    """The last lines of what a run printed, whatever it printed; of long lines a part."""
    text = CONTROL.sub("\ufffd", log.replace("\r\n", "\n").replace("\r", "\n")).rstrip()
    return "\n".join(cut(line, LINE, LINE) for line in text.split("\n")[-LINES:])
