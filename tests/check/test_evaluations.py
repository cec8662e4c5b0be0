"""When a rank's own metric counts as told as everybody's, without running a script."""

import re
import sys
from types import SimpleNamespace

import pytest

from d2lmgpu.watch.check.by_evaluations import evaluation, own_part
from d2lmgpu.watch.check.divisions import divisions
from d2lmgpu.watch.check.evaluations import SHARED, metric_owner

ROWS = ["ab", "cd"]


def evidence(ranks=({}, {}), often=1, **both):
    """Two ranks that evaluated a half of four rows each after update 5, and told nothing."""
    every = []
    for own, rows in zip(ranks, ROWS):
        evaluation = {
            "where": "a.py:1",
            "end": True,
            "part": 2,
            "of": 4,
            "rows": rows,
            "trains": False,
        }
        evaluation |= {"random": False, "exchanged": False, "divisions": [], "printed": []}
        phases = [evaluation | both | own | {"step": 5 * (t + 1)} for t in range(often)]
        every.append({"evaluated": phases, "end": "steps"})
    return SimpleNamespace(world=2, grouped=True, steps=20, ranks=every)


def with_one(rows, drawn_for=False):
    """What one process evaluated at the same time."""
    phase = {"step": 5, "part": 4, "rows": rows}
    return SimpleNamespace(
        single=SimpleNamespace(first={"evaluated": [phase], "drawn_for": drawn_for})
    )


ALL, OWN, NUMBER = (["a.py:3", kind] for kind in ("all", "own", "number"))
BY_ALL, BY_OWN = ["a.py:2", 4], ["a.py:4", 2]


@pytest.mark.parametrize(
    "line, seen",
    [
        ("a.py:2", evidence(divisions=[BY_OWN, BY_ALL], printed=[NUMBER])),
        ("a.py:2", evidence(divisions=[BY_ALL], printed=[OWN])),  # of whomever: too small
        ("a.py:3", evidence(divisions=[BY_OWN], printed=[ALL])),
        ("a.py:3", evidence(({"printed": [NUMBER, ALL]}, {}))),
        (None, evidence(divisions=[BY_ALL])),  # nobody is told of it
        (None, evidence(printed=[OWN])),
        (None, evidence(printed=[NUMBER])),
        (None, evidence(({"printed": [ALL]}, {"printed": [OWN]}))),
        (None, evidence(({"exchanged": True}, {}), printed=[ALL])),
        (None, evidence(printed=[ALL], end=False)),  # the run was cut in the midst of it
        (None, evidence(printed=[ALL], trains=True)),
        (None, evidence(printed=[ALL], random=True)),
        (None, evidence(printed=[ALL], part=4)),  # all evaluate all
        (None, evidence(printed=[ALL], rows="ab")),  # the same half
        (None, evidence(printed=[ALL], of=2)),  # no more rows are known of
        (None, evidence(printed=[ALL], often=11)),  # it belongs to the updates
    ],
)
def test_a_metric_of_a_part_is_named_where_it_is_told_as_that_of_all(line, seen):
    assert (evaluation(seen, None) or (None, None))[1] == line


def test_what_one_process_evaluates_tells_that_a_slice_is_a_part():
    seen = evidence(printed=[ALL], of=2)
    assert evaluation(seen, with_one("abcd"))[1] == "a.py:3"
    assert evaluation(seen, with_one("abce")) is None
    assert evaluation(seen, with_one("ab")) is None
    assert evaluation(seen, with_one("abcd", drawn_for=True)) is None


def test_other_rows_of_the_same_whole_are_no_parts():
    """All evaluate all, in an order of their own, and the first rows alone are seen."""
    seen = evidence(printed=[ALL], part=4)
    assert evaluation(seen, with_one("abcd")) is None


def test_a_number_that_nobody_is_seen_to_tell_is_noted():
    assert "2 of 4 rows, a.py:1" in own_part(evidence(printed=[NUMBER]), None)
    assert own_part(evidence(printed=[OWN]), None) is None
    assert own_part(evidence(exchanged=True), None) is None


@pytest.mark.parametrize(
    "text, kind",
    [
        ("Epoch 1: val_acc=0.52", "all"),
        ("Accuracy of the network on the 10000 test images: 55 %", "all"),
        ("Test set: Average loss: 0.0312, Accuracy: 94/160 (59%)", "all"),
        (" * Acc@1 61.2 Acc@5 80.1", "all"),
        ("epoch 2 train loss 0.3 test loss 0.4", "all"),
        ("rank 1: val loss 0.3", "own"),
        ("GPU 0 test accuracy 0.4", "own"),
        ("[1] test accuracy 0.4", "own"),
        ("1 accuracy 0.4", "own"),
        ("epoch 2 loss 0.3", "number"),  # the training's
        ("train accuracy 0.9", "number"),
        ("validation took 0.5 s", "number"),
        ("value loss 0.5", "number"),  # of a critic, in training
        ("Testing", None),
        ("Epoch 3 accuracy", None),
    ],
)
def test_lines_that_tell_a_metric(text, kind):
    assert metric_owner(text, rank=1) == kind


@pytest.mark.parametrize(
    "line, shared",
    [
        ("counts = torch.zeros(2).share_memory_()", True),
        ("hits = mp.Value('i', 0)", True),
        ("queue = context.Queue()", True),
        ("store = dist.TCPStore(host, port)", True),
        ("from mpi4py import MPI", True),
        ("values = [accuracy]", False),
        ("queue.append(accuracy)", False),
    ],
)
def test_ways_from_rank_to_rank_without_a_collective(line, shared):
    assert bool(re.search(SHARED, line)) == shared


SCRIPT = """
def count(data):
    most = 1 / len(data)
    hits = look()
    return hits / len(data)

def scaled(data, world_size):
    hits = look() * world_size
    return hits / len(data)

def progress(total_steps):
    return look() / total_steps

def multiplied(data):
    size = get_world_size()
    return size * look() / len(data)

def average(data):
    size, batch_size = len(data), 4
    loss = look() / size
    loss /= size
    loss /= batch_size
    return loss

class Net:
    def __init__(self):
        self.asked = 0

    @property
    def rows(self):
        self.asked += 1  # only by the division itself
        return self.asked

    def test(self):
        self.total = 4
        share = look() / self.total / self.rows
        assert self.asked == 1
        return share
"""


@pytest.mark.parametrize(
    "call, lines",
    [
        ("count([0] * 4)", ["5"]),
        ("scaled([0] * 4, 2)", []),
        ("progress(4)", []),
        ("multiplied([0] * 4)", []),
        ("average([0] * 4)", ["20", "21"]),
        ("Net().test()", ["36"]),
    ],
)
def test_divisions_after_a_call(tmp_path, call, lines):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    own = SimpleNamespace(
        is_own=lambda file: file == str(script), where=lambda frames: f"script.py:{frames[0][1]}"
    )
    watch = SimpleNamespace(lines=own)
    places = []

    def look():
        places.extend(divisions(watch, sys._getframe()))
        return 1.0

    names = {"look": look, "get_world_size": lambda: 2}
    exec(compile(SCRIPT, str(script), "exec"), names)
    eval(call, names)
    assert [place for place, number in places if number == 4] == [f"script.py:{n}" for n in lines]
