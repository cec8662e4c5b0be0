"""Public functions given anything: an answer, or an error of ours; never one from inside."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmgpu.collectives import execution, operations, schedules
from d2lmgpu.data import datasets, download
from d2lmgpu.figures import charts, diagrams, pipeline, shards

SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.floats(),
    st.complex_numbers(),
    st.sampled_from([-(10**400), Fraction(1, 2), np.float32(0.5), np.int64(2), "ring", "", b"3"]),
)
ANYTHING = st.one_of(
    SIMPLE,
    st.lists(SIMPLE, max_size=3),
    st.tuples(SIMPLE, SIMPLE),
    st.dictionaries(st.sampled_from(["a", "b", 1, 2]), SIMPLE, max_size=2),
    st.dictionaries(st.just("a"), st.lists(st.lists(SIMPLE, max_size=2), max_size=2)),
    st.dictionaries(st.just("a"), st.dictionaries(st.integers(-1, 4), SIMPLE, max_size=2)),
    st.sampled_from([{1, 2}, object(), int, len, range(3), iter([1])]),
    st.sampled_from([np.zeros((2, 2)), np.array("a")]),
)

ring = schedules.plan("ring", 3, 6)
RIGHT = [  # a function and arguments that are right
    *((make, (3, 6)) for make in schedules.ALGORITHMS.values()),
    (schedules.plan, ("hierarchical", 4, 6)),
    (schedules.machines, (5, 2)),
    (ring.bytes_per_link, (4,)),
    (ring.bytes_sent, (4,)),
    (ring.bytes_received, (4,)),
    (ring.busiest_port, (4,)),
    (execution.shard_sizes, (10, 2, [0.5, 0.5])),
    (execution.split, (np.zeros((3, 2)), [1, 2])),
    (execution.allreduce, ([np.ones(3), np.ones(3)], "ring")),
    (execution.carry_out, (ring, [np.ones(6), np.ones(6), np.ones(6)])),
    (operations.collective, ("reduce", 3, 6, "tree")),
    (datasets.fashion_mnist, (5, 5)),
    (datasets.mnist, (5, 5)),
    (datasets.describe, ("mnist",)),
    (charts.scaling, ({"a": {1: 1.0}}, {"b": {2: 1.5}}, "Title", "speedup")),
    (charts.bars, ({"a": 1}, {"a": 2}, "Title", "s")),
    (charts.bands, ({"a": [[1, 2], [3, 4]]}, "Title", "epoch", "accuracy")),
    (charts.costs, ({"a": {1: 1.0}}, "Title", "x", "y", {"a": {1: 2.0}}, {"m": (1, 2)}, "log")),
    (charts.timeline, ({"GPU": [(0, 1, "send")]}, "Title", "modelled")),
    (diagrams.split_data, (2,)),
    (diagrams.split_layers, (2,)),
    (diagrams.split_model, (2,)),
    (diagrams.holdings, (ring,)),
    (diagrams.traffic, ([ring],)),
    (shards.columns_then_rows, (3, [(4, 2), (4, 2)], [(2, 4), (2, 4)])),
    (pipeline.timetable, ([[("F", 0), ("B", 0)]],)),
]


def name_of(function):
    return getattr(function, "__qualname__", str(function))


@pytest.fixture(scope="module", autouse=True)
def no_network():
    """The data of this machine, or what is shipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("d2lmgpu.data.files.download", no_mirror)
        yield


def no_mirror(urls, size):
    raise download.DownloadError("no network here")


@pytest.mark.parametrize("function, right", RIGHT, ids=lambda v: name_of(v) if callable(v) else "")
def test_anything_in_place_of_an_argument(function, right):
    function(*right)

    @settings(max_examples=40)
    @given(st.data())
    def given_anything(data):
        arguments = list(right)
        arguments[data.draw(st.integers(0, len(right) - 1))] = data.draw(ANYTHING)
        try:
            answer = function(*arguments)
            if isinstance(answer, charts.Chart):
                answer.svg()
        except Exception as error:
            assert type(error).__module__.startswith("d2lmgpu."), repr(error)
            assert str(error)

    given_anything()


def test_every_public_function_is_tried():
    tried = {name_of(function) for function, _ in RIGHT}
    for module in (schedules, execution, charts, diagrams, pipeline, datasets):
        for name, value in vars(module).items():
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and not name.startswith("_") and name not in HELPERS:
                assert name in tried, f"{module.__name__}.{name}"


# What is called with what another function of the same room has checked.
HELPERS = {"check_devices", "algorithm", "sums_after_rounds"}
