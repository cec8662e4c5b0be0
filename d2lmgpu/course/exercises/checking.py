"""Runs the reader's answer in a process of its own, and says what came of it."""

import pickle
from dataclasses import dataclass

from d2lmgpu.course.exercises.messages import Job
from d2lmgpu.course.exercises.registry import find, need
from d2lmgpu.process.child import ONE_WORKER, Child, end_in_words
from d2lmgpu.process.output import Bounded
from d2lmgpu.process.sending import pickled
from d2lmgpu.process.settings import run_module, settings

SECONDS = 20  # that an answer may take
SEEDS = (0, 1, 2)
SHOWN = 1000  # bytes of the beginning, and of the end, of what an answer prints


@dataclass(frozen=True)
class Verdict:
    """What was found: ``results`` holds ``(is it right?, text)`` a check; true if all are right.

    ``reason`` is one word for what is wrong ("" for nothing).
    """

    name: str
    results: tuple
    reason: str = ""
    printed: str = ""

    def __bool__(self):
        return not self.reason

    def __str__(self):
        lines = [f"{'✓' if right else '✗'} {text}" for right, text in self.results]
        if self.printed:
            lines.append(f"It printed:\n{self.printed}")
        lines.append(f"{self.name}: {'correct' if self else 'not yet'}.")
        return "\n".join(lines)

    __repr__ = __str__


def check(name, answer, seeds=SEEDS, seconds=SECONDS) -> Verdict:
    """Try ``answer``, a function, on cases drawn from ``seeds``; a Verdict, which also prints.

    It runs in a process of its own, is ended after ``seconds``, and cannot harm the notebook.
    Raises ExerciseError for a name that is none, and for an answer that is no function.
    """
    return tried(name, sendable(name, answer), seeds, seconds)


def sendable(name, answer) -> bytes:
    """``answer`` as bytes, which ``tried`` takes. Raises ExerciseError as ``check`` does.

    Raises TypeError that names what of the answer cannot be sent to another process.
    """
    find(name)
    need(callable(answer), "The answer", answer, "a function")
    return pickled(answer, {})


def tried(name, call, seeds=SEEDS, seconds=SECONDS) -> Verdict:
    """The Verdict on ``sendable``'s bytes; what they hold is made in the other process alone."""
    job: Job = {"name": name, "seeds": list(seeds), "call": call} | settings({})
    events, printed = [], Bounded(SHOWN, SHOWN)
    with Child(ONE_WORKER, run_module("d2lmgpu.course.exercises.worker"), {}) as child:
        child.send(pickle.dumps(job))
        end = child.read(events.append, printed.add, time_limit=seconds)
    text = printed.text().strip()
    results = tuple(
        (event["right"], event["text"]) for event in events if event["event"] == "verdict"
    )
    reason = next((event["reason"] for event in events if event.get("reason")), "")
    if not reason and not any(event["event"] == "done" for event in events):
        if child.expired:
            reason, what = "time", f"it had not returned after {seconds:g} seconds, and was ended"
        else:
            (code,) = end["codes"] or (None,)
            ended = "its process was ended" if code is None else end_in_words(code)
            reason, what = "ended", ended
        results += ((False, f"Your function did not come to an end: {what}."),)
    return Verdict(name, results, reason, text if reason else "")
