"""Your Own Script"""

from collections.abc import Callable

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import EXERCISES, Wrong, exercise
from d2lmgpu.process.step_parts import BACKWARD, COMPUTING, EVALUATING, EXCHANGING, LOADING
from d2lmgpu.watch.explain.messages import RankReport
from d2lmgpu.watch.explain.rules import verdict
from d2lmgpu.watch.explain.summary import Summary

# simulated seconds: for a row, for a row, to meet, to evaluate
LOAD, TRAIN, MEET, EVALUATE = 0.1e-3, 1e-3, 10e-3, 30e-3
TENTH = 10  # of how many batches one is asked for
NOTHING = dict.fromkeys(
    (
        "elements",
        "exchanged",
        "exchanging",
        "operations",
        "doubles",
        "casts",
        "faults",
        "python_threads",
        "gradient_bytes",
    ),
    0,
)


def some_ranks(g) -> tuple[list, list[int]]:
    """(gradients of the ranks, their rows): rows differ."""
    k, n = int(g.integers(2, 5)), int(g.integers(3, 7))
    rows = g.choice(np.arange(1, 20), k, replace=False)
    return list(g.normal(size=(k, n))), [int(row) for row in rows]


def row_by_row(gradients, rows) -> np.ndarray:
    """Each rank's gradient as often as it has rows."""
    return np.mean([g for g, n in zip(gradients, rows, strict=True) for _ in range(n)], axis=0)


formula(
    "mean-of-all",
    "A mean times its number of rows is a sum. Sums add up.",
    "Add what each rank has summed, and divide once, by the rows of all ranks.",
    cases=lambda g: [some_ranks(g) for _ in range(8)],
    right=row_by_row,
    slips={
        "means": (
            lambda gradients, rows: np.mean(gradients, axis=0),
            "A rank with more rows counts no more than the others: a mean of means.",
        ),
        "sum": (
            lambda gradients, rows: np.array(rows) @ np.array(gradients),
            "That is the gradient of a sum over all rows.",
        ),
        "each": (
            lambda gradients, rows: np.array(rows) @ np.array(gradients) / len(rows),
            "It is divided by the number of ranks, and not by that of rows.",
        ),
    },
    what="The gradient",
    says="One device with all rows has that gradient.",
)


def to_clip(g) -> tuple[list, float]:
    """Gradients of ranks of very different lengths, and a limit below or above their mean's."""
    k, n = int(g.integers(2, 5)), int(g.integers(3, 7))
    gradients = list(g.normal(size=(k, n)) * g.choice([0.2, 5.0], (k, 1)))
    return gradients, float(g.uniform(0.3, 1.5) * np.linalg.norm(np.mean(gradients, axis=0)))


def at_most(gradient, limit) -> np.ndarray:
    size = np.sqrt((np.asarray(gradient) ** 2).sum())
    return gradient if size <= limit else gradient / size * limit


formula(
    "clip-once",
    "One device never sees the gradients of the ranks. Which gradient does it clip?",
    "First the mean over ranks, then its norm, then the factor, which is never above 1.",
    cases=lambda g: [to_clip(g) for _ in range(12)],
    right=lambda gradients, limit: at_most(sum(gradients) / len(gradients), limit),
    slips={
        "early": (
            lambda gradients, limit: np.mean([at_most(g, limit) for g in gradients], axis=0),
            "Each rank clips its own gradient, before they meet.",
        ),
        "always": (
            lambda gradients, limit: (
                np.mean(gradients, axis=0) * limit / np.linalg.norm(np.mean(gradients, axis=0))
            ),
            "A gradient that is short enough stays as it is.",
        ),
    },
    what="The gradient",
    says="The averaged gradient is clipped, as on one device.",
)


def dealt(g) -> tuple[list[list[int]], int]:
    """(hits, n): the rows of each rank in turn, the first ones again at the end."""
    k, n = int(g.integers(2, 6)), int(g.integers(7, 30))
    right = g.integers(0, 2, n)
    each = -(-n // k)
    return [[int(right[(r + i * k) % n]) for i in range(each)] for r in range(k)], n


formula(
    "count-once",
    "Which row is `hits[r][i]`? Only rows below `n` are new.",
    "Row `r + i * k`, for `k` ranks. From `n` on they are rows that have been counted.",
    cases=lambda g: [dealt(g) for _ in range(16)],
    right=lambda hits, n: sum(hits[row % len(hits)][row // len(hits)] for row in range(n)) / n,
    slips={
        "twice": (lambda hits, n: np.mean(hits), "Some rows are counted twice."),
        "too-few": (
            lambda hits, n: np.sum(hits) / n,
            "It is divided by n, but more than n rows are added.",
        ),
    },
    what="The accuracy",
    says="Each row counts once.",
)


class Timed:
    """A device that trains: a clock, the parts of its steps, and what it was asked to do."""

    def __init__(self, device):
        self.rank = device.rank
        self.k = device.k
        self._device = device
        self.trained, self.evaluated = [], []
        self._parts = {}
        self._steps = []
        self._calls = 0
        self._now = 0.0

    def load(self, rows) -> list:
        """Make rows ready."""
        self._spend(LOADING, LOAD * len(rows))
        return list(rows)

    def train(self, rows) -> float:
        """One update on rows, averaged over all devices; the mean loss of these rows."""
        self._spend(COMPUTING, TRAIN * len(rows))
        self._meet(BACKWARD, 0.0)
        self.trained.append(list(rows))
        self._steps.append((0.0, self._now, self._parts))
        self._parts = {}
        return float(np.mean(np.sin(rows)))

    def mean(self, number) -> float:
        """The mean of a number over all devices."""
        self._calls += 1
        self._meet(EXCHANGING, MEET)
        return float(self._device.all_gather(number).mean())

    def evaluate(self) -> None:
        """Evaluate the network."""
        self.evaluated.append(len(self.trained))
        self._spend(EVALUATING, EVALUATE)

    def _spend(self, part, seconds, busy=1.0):
        spent = self._parts.setdefault(part, [0.0, 0.0, 0.0])
        spent[0], spent[1] = spent[0] + seconds, spent[1] + busy * seconds
        self._now += seconds

    def _meet(self, part, seconds):
        last = self._device.all_gather(self._now).max()
        self._spend(part, last - self._now + seconds, busy=0.0)

    def report(self) -> RankReport:
        """What an Observer would say."""
        seconds = MEET * self._calls
        call = ["mean", "device.mean", self._calls, 0, seconds, seconds]
        lines = [[part, f"your train, device {self.rank}", 1] for part in (COMPUTING, LOADING)]
        return NOTHING | {
            "rank": self.rank,
            "measured_steps": self._steps,
            "measured": len(self._steps),
            "rows": sum(map(len, self.trained)),
            "measured_backwards": len(self._steps),
            "ddp": True,
            "data_parallel": None,
            "distributed": True,
            "framework": "torch",
            "threads": 1,
            "cores": None,
            "set": {},
            "environ": {},
            "spans": [],
            "others": [],
            "prints": [hash(tuple(rows)) for rows in self.trained],
            "loaders": [],
            "lines": lines,
            "calls": [call] * bool(self._calls),
        }


def trained(train, k, batches) -> tuple:
    """(what each device returned, the devices) of ``train`` on k devices."""
    devices = [None] * k

    def run(device):
        devices[device.rank] = Timed(device)
        return train(devices[device.rank], [list(rows) for rows in batches])

    return together(run, k).results, devices


@exercise(
    "until-none",
    "Ask for one thing at a time. Which rows has a device, and which has the other one?",
    "`rows[device.rank::device.k]` are a device's own. A number for the log is needed for every "
    "tenth batch only, but by all devices; and all can wait with the evaluation until the end.",
)
def none_is_left(train, g) -> str:
    """train(device, batches): the losses of every tenth batch."""
    batches = g.permutation(40 * 64).reshape(40, 64).tolist()
    expected = [np.mean(np.sin(rows)) for rows in batches[::TENTH]]
    summaries = []
    for k in (1, 2):
        results, devices = trained(train, k, batches)
        for update, rows in enumerate(batches):
            parts = [device.trained[update : update + 1] for device in devices]
            learned = sorted(row for part in parts for shard in part for row in shard)
            if sorted(set(learned)) != sorted(rows):
                raise Wrong("rows", f"{k} devices, batch {update}: not all its rows are learned.")
        for answer in results:
            if np.shape(answer) != np.shape(expected) or not np.allclose(answer, expected):
                raise Wrong("losses", f"{k} devices: return the mean loss of batch 0, 10, 20, …")
        if len(batches) not in devices[0].evaluated:
            raise Wrong("evaluate", "The network is not evaluated after the last batch.")
        summaries.append(Summary([device.report() for device in devices]))
    cause, _ = verdict(summaries[1], summaries[0])
    if cause:
        words = f"{cause.name}, {cause.share:.0%} of the step. {cause.sentence} {cause.mend}"
        raise Wrong(cause.name, f"explain says: {words}")
    return "explain says: none."


def slip(own=True, often=False, evaluates=False) -> Callable:
    def train(device, batches) -> list:
        losses = []
        for number, rows in enumerate(batches):
            loss = device.train(device.load(rows[device.rank :: device.k] if own else rows))
            if often or number % TENTH == 0:
                loss = device.mean(loss)
            if number % TENTH == 0:
                losses.append(loss)
            if evaluates and device.rank == 0:
                device.evaluate()
        device.evaluate()
        return losses

    return train


EXERCISES["until-none"].slips = {
    "whole-data": slip(own=False),
    "sync": slip(often=True),
    "rank0-work": slip(evaluates=True),
}
