"""The timeline of buckets: its plan against the cost model's formula and a small queue by hand."""

import json
from itertools import pairwise

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.costmodel.model import PRESETS, exposed_seconds, flat_ring_seconds
from d2lmgpu.course import explorers
from d2lmgpu.figures.buckets import BucketTimeline, plan_buckets
from d2lmgpu.figures.checks import FigureError

LAYERS = [("one", 100.0, 1.0), ("two", 300.0, 2.0), ("three", 50.0, 4.0)]
GOOD = {
    "layers": LAYERS,
    "exchanges": {"2": lambda size: size / 100},
    "sizes": {"each": 0, "300 B": 300, "all": 1000},
    "about": "<A>",
}
TIMES = st.floats(0, 10)


def data_of(timeline):
    return json.loads(BeautifulSoup(timeline.html, "html.parser").script.string)


@pytest.mark.parametrize(
    ("at_least", "buckets"),
    [  # first and last layer, bytes, start, end: the pass computes three, two, one until 4, 6, 7
        (0, [(2, 2, 50, 4, 4.5), (1, 1, 300, 6, 9), (0, 0, 100, 9, 10)]),
        (300, [(1, 2, 350, 6, 9.5), (0, 0, 100, 9.5, 10.5)]),
        (1000, [(0, 2, 450, 7, 11.5)]),
    ],
)
def test_a_bucket_leaves_when_it_is_full_and_the_one_before_it_is_through(at_least, buckets):
    planned = plan_buckets(LAYERS, lambda size: size / 100, at_least)
    flat = [(b.first, b.last, b.num_bytes, b.start, b.end) for b in planned]
    assert flat == [pytest.approx(bucket) for bucket in buckets]


@given(st.integers(1, 6), st.integers(1, 5), TIMES, TIMES)
def test_with_equal_layers_the_cost_model_says_the_same(num_buckets, per_bucket, each, latency):
    num_layers = num_buckets * per_bucket
    layers = [("", 8.0, each)] * num_layers
    planned = plan_buckets(layers, lambda size: latency + size / 8, 8.0 * per_bucket)
    exchange, backward = num_buckets * (latency + per_bucket), each * num_layers
    exposed = exposed_seconds(exchange, backward, num_buckets)
    assert len(planned) == num_buckets
    assert planned[-1].end - backward == pytest.approx(exposed, abs=1e-9)


@given(st.lists(st.tuples(st.just(""), TIMES, TIMES), min_size=1, max_size=9), TIMES, TIMES)
def test_every_gradient_is_in_one_bucket_and_buckets_go_one_after_the_other(layers, each, at_least):
    planned = plan_buckets(layers, lambda size: each, at_least)
    assert [i for b in planned for i in range(b.last, b.first - 1, -1)] == [
        *range(len(layers) - 1, -1, -1)
    ]
    for bucket in planned:
        ready = sum(seconds for *_, seconds in layers[bucket.first :])
        assert bucket.start >= ready - 1e-9
        inside = [size for _, size, _ in layers[bucket.first : bucket.last + 1]]
        assert bucket.num_bytes == pytest.approx(sum(inside))
        assert bucket.first == 0 or bucket.num_bytes >= at_least
        assert not inside[1:] or sum(inside[1:]) < at_least, "it left as soon as it was full"
    assert all(a.end <= b.start for a, b in pairwise(planned))


def test_the_course_s_timeline_is_the_update_of_the_page_on_overlap():
    timeline = explorers.buckets()
    machine = PRESETS["V100 NVLink"]
    for gpus, plans in timeline.plans.items():
        for buckets in (*plans["during"].values(), plans["end"]):
            count = len(buckets)
            bucket_seconds = flat_ring_seconds(machine, int(gpus), 102.4e6 / count)
            exposed = exposed_seconds(bucket_seconds * count, 0.040, count)
            assert buckets[-1].end - 0.040 == pytest.approx(exposed)
    totals = {size: of[-1].end for size, of in timeline.plans["512"]["during"].items()}
    assert min(totals, key=totals.get) == "25.6 MB" and max(totals, key=totals.get) == "6.4 MB"


def test_the_script_is_told_the_plan_and_without_scripts_words_say_both_times():
    timeline = BucketTimeline(**GOOD, start="300 B", forward=1.0, kind="measured")
    data = data_of(timeline)
    planned = plan_buckets(LAYERS, lambda size: size / 100, 300)
    assert data["plans"]["2"]["during"]["300 B"] == [
        [b.first, b.last, b.num_bytes, b.start, b.end] for b in planned
    ]
    assert data["plans"]["2"]["end"] == data["plans"]["2"]["during"]["all"]
    assert "11,500 ms with buckets" in repr(timeline) and "12,500 ms with all" in repr(timeline)
    assert repr(timeline).endswith("at the end, measured.")
    text = BeautifulSoup(timeline.html, "html.parser").get_text()
    assert repr(timeline) in text and "<A>" in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": []},
        {"layers": None},
        {"layers": [("one", 1.0)]},
        {"layers": [("one", -1.0, 1.0)]},
        {"exchanges": {}},
        {"exchanges": {"2": 3}},
        {"exchanges": {"2": lambda size: -1.0}},
        {"sizes": {}},
        {"sizes": {"x": "y"}},
        {"sizes": {"x": -1}},
        {"about": None},
        {"start": "2 B"},
        {"among": "3"},
        {"forward": -1},
        {"kind": "guessed"},
    ],
)
def test_what_is_no_update_is_refused(wrong):
    with pytest.raises(FigureError):
        BucketTimeline(**GOOD | wrong)
