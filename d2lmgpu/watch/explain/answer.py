"""The answer to "why is the second device slower?", as data and in words."""

from dataclasses import dataclass
from html import escape

from d2lmgpu.machine.hardware import machine
from d2lmgpu.process.step_parts import IN_WORDS
from d2lmgpu.records.speedup import MOST
from d2lmgpu.watch import line_of_code
from d2lmgpu.watch.cuda.costs import SENTENCES
from d2lmgpu.watch.explain.causes import Cause
from d2lmgpu.watch.explain.page import timelines
from d2lmgpu.watch.explain.summary import Summary
from d2lmgpu.watch.github import annotation

SCHEMA_VERSION = 2  # of schema.json, which says what `as_dict` gives
OUTCOMES = {"none": 0, "cause": 1, "not explained": 2}  # and the exit codes of the command
BUSY = 0.2  # the share of a step without a core from which on it is told
MOST_DRIFT = 1.25  # times as long as the others the steps of one half may take


@dataclass(frozen=True)
class Answer:
    """What one and k processes did. ``single`` is None where the script has no run with one."""

    script: str
    single: Summary | None
    run: Summary
    cause: Cause | None
    others: list
    predicted: float | None  # speedup, modelled
    notes: list
    folder: str = ""  # in which the files are that a cause names

    @property
    def outcome(self) -> str:
        """One of ``OUTCOMES``."""
        return "cause" if self.cause else "none"

    def as_dict(self) -> dict:
        """For ``--json``, as ``schema.json`` beside this file has it."""
        cause, others = self.cause, [self._in_short(other) for other in self.others]
        measured = None if self.too_good else self.run.speedup(self.single)
        return _head(self.outcome) | {
            "cause": cause.name if cause else "none",
            "share": round(cause.share, 3) if cause else 0.0,
            "where": cause.where if cause else None,
            "speedup": {
                "predicted": self.predicted and round(self.predicted, 2),
                "measured": measured and round(measured, 2),
            },
            "others": others,
            "notes": self.notes,
            "on_a_gpu": self.costs,
            "devices": [self.single and self.single.k, self.run.k],
            "step": self._step(),
            "unsteady": self.unsteady,
        }

    def annotations(self, script) -> list[str]:
        """For ``--github``: the causes as warnings at their lines."""
        return [
            annotation(
                "warning",
                f"d2lmgpu explain: {cause.name}, {cause.share:.0%} of the step",
                f"{cause.sentence}\n{cause.mend}",
                script,
                cause.where,
            )
            for cause in ([self.cause, *self.others] if self.cause else [])
        ]

    @property
    def unsteady(self) -> str | None:
        """Why the times are not told apart from what else the machine did; None if they are."""
        if self.too_good:
            return "more was measured than so many devices can give"
        if self.run.queued > BUSY and not self.run.crowded:
            return f"other programs or threads had the cores for {self.run.queued:.0%} of a step"
        if self.run.drift > MOST_DRIFT:
            return f"one half of its steps took {self.run.drift:.2f} times as long as the other"
        return None

    def _step(self):
        seconds, rows = self.run.seconds, self.run.rows_like(self.single or self.run)
        parts = {name: seconds * share for name, share in self.run.shares().items()}
        return {"seconds": seconds, "rows": rows, "parts": parts}

    @property
    def costs(self) -> list:
        """What the first rank does that would cost on a GPU, see ``watch.cuda.costs``."""
        return self.run.ranks[0].get("costs", [])

    @property
    def too_good(self) -> bool:
        """Whether more was measured than so many devices can give: then it is no speedup."""
        if self.single is None:
            return False
        return (self.run.speedup(self.single) or 0) > MOST * self.run.k / self.single.k

    def _repr_mimebundle_(self, **_):
        words = f'<pre style="white-space: pre-wrap; text-align: left">{escape(str(self))}</pre>'
        return {"text/plain": str(self), "text/html": words + timelines(self.run)}

    def _in_short(self, cause):
        return {"cause": cause.name, "share": round(cause.share, 3), "where": cause.where}

    def __str__(self):
        """One screen."""
        measured, shares = self.run.speedup(self.single), self.run.shares()
        kind = "devices in one process" if self.run.in_threads else "processes"
        lines = [
            f"{self.script}: {self.run.k} {kind}, {len(self.run.steps)} steps measured, "
            f"{1000 * self.run.seconds:.1f} ms a step"
        ]
        if measured:
            modelled = f", {self.predicted:.2f} modelled" if self.predicted else ""
            what = "not explained, see below" if self.too_good else f"{measured:.2f} measured"
            lines.append(f"Speedup from {self.single.k} to {self.run.k} devices: {what}{modelled}.")
        lines.append(
            "A step: "
            + ", ".join(
                f"{words} {shares[part]:.0%}"
                for part, words in IN_WORDS.items()
                if shares.get(part, 0) >= 0.01
            )
        )
        lines.append("")
        if self.cause is None:
            lines.append("No cause found: none costs as much as 15 % of the step.")
        for number, cause in enumerate([self.cause, *self.others][:3] if self.cause else []):
            title = "The cause that costs most" if not number else "Then"
            at = f", at {code(cause.where, self.folder)}" if cause.where else ""
            lines += [
                f"{title}: {cause.name}, {cause.share:.0%} of the step{at}",
                f"  {cause.sentence}",
                f"  {cause.mend}",
            ]
        if self.costs:
            lines += ["", "On a GPU these would cost as well (counted here, not measured):"]
        for what, where, times in self.costs:
            at = f"{code(where, self.folder)}: " if where else ""
            lines.append(f"  {at}{SENTENCES[what].format(times=times)}")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def _head(outcome, reason=None):
    """What is told of any outcome."""
    kind = {name: machine()[name] for name in ("cpu", "cores")}
    head = {"schema_version": SCHEMA_VERSION, "command": "explain", "outcome": outcome}
    return head | {"machine": kind, "against": None, "reason": reason}


@dataclass(frozen=True)
class Refused:
    """The answer of a script that does not train, or for too few updates: ``reason``, in words."""

    reason: str
    outcome = "not explained"

    def as_dict(self) -> dict:
        """As that of an ``Answer``."""
        nothing = {"cause": "none", "share": 0.0, "where": None, "step": None, "unsteady": None}
        nothing |= {name: [] for name in ("others", "notes", "on_a_gpu")}
        nothing |= {"speedup": {"predicted": None, "measured": None}, "devices": [None, None]}
        return _head(self.outcome, self.reason) | nothing

    def annotations(self, script) -> list[str]:
        """For ``--github``."""
        title = f"d2lmgpu explain: {self.outcome}"
        return [annotation("warning", title, self.reason, script)]


def code(where, folder) -> str:
    """The line of code at "file:line", with that place; a notebook's cell has no file to name."""
    line, number = line_of_code(where, folder), where.rpartition(":")[2]
    place = f"line {number} of its cell" if "ipykernel" in folder else where
    return f"{place}: {line}" if line else place
