"""The curve that grows: what it keeps, what it draws, what it tells the lab."""

import json
import re
import subprocess
import sys

import pytest

from d2lmgpu.figures import animator
from d2lmgpu.figures.animator import Animator


class Handle:
    """Stands for a notebook's display; keeps each picture that was shown."""

    def __init__(self):
        self.shown, self.places = [], 0

    def display(self, chart, display_id):
        assert display_id is True
        self.places += 1
        self.update(chart)
        return self

    def update(self, chart):
        self.shown.append(chart.svg())


@pytest.fixture
def notebook(monkeypatch):
    handle = Handle()
    monkeypatch.setattr(animator, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", handle.display)
    return handle


def test_points_are_kept_a_list_a_curve():
    curve = Animator("epoch", legend=["train", "test"])
    curve.add(1, (0.5, None))
    curve.add(2, (0.75, 0.25))
    curve.add((3, 4), (1, 2))
    assert curve.X == [[1, 2, 3], [2, 4]]
    assert curve.Y == [[0.5, 0.75, 1], [0.25, 2]]


def test_a_single_number_is_one_curve():
    curve = Animator()
    curve.add(1, 0.5)
    assert (curve.X, curve.Y) == ([[1]], [[0.5]])


def test_as_many_x_as_y():
    with pytest.raises(ValueError):
        Animator().add((1, 2), (1, 2, 3))


def test_nothing_is_drawn_outside_of_a_notebook(monkeypatch):
    monkeypatch.setattr("IPython.display.display", lambda *a, **k: pytest.fail("drawn"))
    Animator("epoch").add(1, 0.5)


def test_a_notebook_shows_one_picture_that_is_redrawn(notebook):
    curve = Animator("epoch", "accuracy", legend=["first", "second"], xlim=[1, 10])
    curve.add(1, (0.5, 0.25))
    curve.add(2, (0.75, 0.5))
    assert len(notebook.shown) == 2 and notebook.places == 1
    last = notebook.shown[-1]
    assert all(f">{word}<" in last for word in ("epoch", "accuracy", "first", "second"))
    assert notebook.shown[0] != last
    assert 'aria-label="first 0.750 at epoch 2; second 0.500 at epoch 2"' in last


def test_every_curve_is_drawn_however_many_there_are(notebook):
    curve = Animator("epoch", legend=[f"run {i}" for i in range(6)])
    curve.add(1, [i / 10 for i in range(6)])
    assert [line.get_ydata()[0] for line in curve.axes.lines] == [i / 10 for i in range(6)]
    named = [text.get_text() for text in curve.axes.get_legend().get_texts()]
    assert named == [f"run {i}" for i in range(6)]
    assert "run 5 0.500 at epoch 1" in notebook.shown[0]


def test_a_curve_without_legend_is_named_after_its_axis(notebook):
    curve = Animator("epoch", "test acc")
    curve.add(3, 0.875)
    assert 'aria-label="test acc 0.875 at epoch 3"' in notebook.shown[0]


def test_the_lab_is_told_each_point(monkeypatch, tmp_path):
    events = tmp_path / "events"
    events.touch()
    monkeypatch.setenv("D2LMGPU_EVENTS", str(events))
    curve = Animator("epoch", "loss", legend=["a", "b"], xlim=[1, 3])
    curve.add(1, (0.5, None))
    (event,) = map(json.loads, events.read_text().splitlines())
    assert event["event"] == "point" and event["points"] == [[0, 1.0, 0.5]]
    assert event["legend"] == ["a", "b"]
    assert event["xlabel"] == "epoch" and event["xlim"] == [1, 3]


def test_a_run_of_one_epoch_has_no_limits_to_expand(notebook):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = Animator("epoch", xlim=[1, 1])
        curve.add(1, 0.5)
    assert "xlim" not in curve.settings and curve.axes.get_xlim() == (0, 2)
    assert [tick for tick in curve.axes.get_xticks() if 0 <= tick <= 2] == [0, 1, 2]


def test_epochs_are_whole_numbers_on_the_axis(notebook):
    animator = Animator("epoch", "test acc", xlim=[1, 3])
    animator.add(1, 0.5)
    animator.add(2, 0.6)
    assert all(tick == round(tick) for tick in animator.axes.get_xticks())


def test_a_worker_process_imports_nothing_that_draws():
    program = (
        "import sys; from d2lmgpu.figures.animator import Animator; Animator('epoch').add(1, 0.5);"
        "print(sorted({'IPython', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def scalars():
    """One number, as those who train have it."""
    import numpy as np
    import torch

    return {
        "float": 0.5,
        "numpy": np.float32(0.5),
        "0-d array": np.array(0.5),
        "0-d tensor": torch.tensor(0.5),
        "gradient": torch.tensor(0.5).requires_grad_(),
        "half": torch.tensor(0.5, dtype=torch.bfloat16),
        "0-d of integers": torch.tensor(1) / 2,
    }


@pytest.mark.parametrize("kind", scalars())
@pytest.mark.filterwarnings("error")
def test_an_array_of_one_number_is_a_number(notebook, kind):
    scalar = scalars()[kind]
    curve = Animator("epoch", legend=["train", "test"])
    curve.add(scalar, (scalar, None))
    curve.add(scalar * 2, (scalar * 2, scalar))
    alone = Animator()
    alone.add(scalar, scalar)
    assert (curve.X, curve.Y) == ([[0.5, 1.0], [1.0]], [[0.5, 1.0], [0.5]])
    assert (alone.X, alone.Y) == ([[0.5]], [[0.5]])
    assert {type(y) for ys in (*curve.Y, *alone.Y) for y in ys} == {float}


MXNET = """
from d2lmgpu.figures.animator import Animator
from mxnet import np, npx
npx.set_np()
curve = Animator()
curve.add(np.array(1), np.array(0.5))
curve.add(np.array(2), (np.array(0.25),))
curve.add(3, np.array([0.125]))
print(curve.X, curve.Y)
"""


def test_those_of_mxnet_are_numbers_too():
    out = subprocess.run([sys.executable, "-c", MXNET], capture_output=True, text=True)
    assert out.stdout == "[[1.0, 2.0, 3.0]] [[0.5, 0.25, 0.125]]\n", out.stderr


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "values, marks",
    [
        ([2.0, NAN], 1),
        ([2.0, 1.0, INF, -INF], 1),
        ([NAN, 1.0, 2.0], 1),
        ([NAN, NAN], 1),
        ([INF], 1),
        ([1.0, NAN, 2.0, NAN], 1),
        ([1e30, 1e300, INF], 1),
        ([2.0, 1.0], 0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_not_finite_is_a_gap_that_is_marked(notebook, values, marks):
    curve = Animator("epoch", legend=["train loss"], xlim=[1, 5])
    for epoch, value in enumerate(values, start=1):
        curve.add(epoch, value)
    assert len(notebook.shown) == len(values), "each was drawn"
    picture = notebook.shown[-1]
    assert picture.count(">diverged</text>") == marks
    assert ("diverged at epoch" in picture) == (
        values[-1] in (INF, -INF) or values[-1] != values[-1]
    )
    (line,) = curve.axes.lines
    drawn = line.get_ydata()
    assert [y == y for y in drawn] == [abs(y) < INF for y in values]
    series = json.loads(re.search("data-chart='(.*?)'", picture)[1])
    assert len(series[0]["points"]) == sum(abs(y) < INF for y in values)


def test_two_curves_that_diverge_are_both_marked(notebook):
    curve = Animator("epoch", legend=["a", "b", "c"])
    curve.add(1, (1.0, 1.0, 1.0))
    curve.add(2, (NAN, INF, 2.0))
    assert notebook.shown[-1].count(">diverged</text>") == 2
    heights = [text.get_position()[1] for text in curve.axes.texts]
    assert len(set(heights)) == 2, "one word lies over the other"


@pytest.mark.parametrize(
    "xs, ys",
    [
        ([0, 1, 2], [2.0, 1.0, 0.5]),
        ([1, 2, 3], [0.0, 0.0, 1.0]),
        ([1, 2], [-INF, -2.0]),
        ([1, 2, 3], [NAN, 0.0, 1e-3]),
        ([-1, 0], [0.0, -1.0]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_logarithmic_axis_waits_for_a_place_above_zero(notebook, xs, ys):
    curve = Animator("step", legend=["train loss"], xscale="log", yscale="log")
    for number, (x, y) in enumerate(zip(xs, ys), start=1):
        curve.add(x, y)
        drawn = [(a, b) for a, b in zip(xs, ys[:number]) if abs(b) < INF]
        scales = [curve.axes.get_xscale(), curve.axes.get_yscale()]
        there = [any(point[place] > 0 for point in drawn) for place in (0, 1)]
        assert scales == ["log" if some else "linear" for some in there]
    assert len(notebook.shown) == len(xs)
