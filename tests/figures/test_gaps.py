"""The gap of a timeline: which one is the longest, and that it is drawn with its time."""

import pytest

from d2lmgpu.figures import charts
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.gaps import longest_gap

LANES = {
    "rank 0": [(20, 30, "update"), (0, 6, "compute")],
    "rank 1": [(0, 4, "compute"), (4, 9, "wait"), (9, 30, "exchange")],
}


def test_the_longest_gap_is_a_wait_or_a_pause_of_the_lane_that_is_asked_for():
    assert longest_gap(LANES) == (5, "rank 1", 4)
    assert longest_gap(LANES, "rank 1") == (5, "rank 1", 4)
    assert longest_gap(LANES, "rank 0") == (14, "rank 0", 6)
    assert longest_gap({"one": [(0, 1, "a"), (1, 2, "b")]}, "one") is None
    assert longest_gap({"one": [(0, 1, "a")], "two": []}) is None


@pytest.mark.parametrize("lane", [None, "rank 0"])
def test_it_is_hatched_marked_with_its_time_and_told(lane):
    chart = charts.timeline(LANES, "Point", "measured", gap=lane)
    (axes,) = chart.axes
    gap = longest_gap(LANES, lane)
    hatched = [bar for bar in axes.patches if bar.get_hatch()]
    assert [(bar.get_x(), bar.get_width()) for bar in hatched][-1] == (gap.start, gap.length)
    assert [text.get_text() for text in axes.texts] == [f"{gap.length:.3g} ms"]
    assert chart.alt.endswith(f"{gap.length:.3g} ms, of {gap.lane}.")


def test_nothing_is_marked_where_nobody_waits():
    (axes,) = charts.timeline({"GPU": [(0, 1, "compute"), (2, 3, "send")]}, "Point").axes
    assert not axes.texts and not any(bar.get_hatch() for bar in axes.patches)


@pytest.mark.parametrize("lane", ["rank 2", "", 0])
def test_a_lane_that_is_not_there_is_refused(lane):
    with pytest.raises(FigureError):
        charts.timeline(LANES, "Point", gap=lane)
