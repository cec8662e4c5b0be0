"""Every allreduce against NumPy's sum, and every schedule against its stated budget."""

from collections import defaultdict
from functools import reduce
from math import ceil, log2

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from d2lmgpu.collectives import execution
from d2lmgpu.collectives.execution import ALGORITHMS, CollectiveError, allreduce, shard_sizes, split
from d2lmgpu.collectives.schedules import machines, plan

DEVICES = st.integers(1, 33)
NAMES = st.sampled_from(sorted(ALGORITHMS))
SIZES = st.integers(0, 200)
NUMBERS = st.sampled_from(
    ["int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
)


def device_arrays(seed, k, shape, dtype):
    """k random arrays; integers over their full range, so that sums wrap around."""
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return [rng.integers(info.min, info.max, shape, dtype, endpoint=True) for _ in range(k)]
    return [np.asarray(rng.standard_normal(shape)).astype(dtype) for _ in range(k)]


@settings(max_examples=300)
@given(
    NAMES, DEVICES, npst.array_shapes(min_dims=0, min_side=0, max_side=7), NUMBERS, st.integers()
)
def test_every_device_ends_with_numpys_sum(algorithm, k, shape, dtype, seed):
    arrays = device_arrays(abs(seed), k, shape, np.dtype(dtype))
    expected = np.sum(np.stack(arrays), axis=0, dtype=dtype)
    scale = np.sum(np.abs(np.stack(arrays)).astype(float), axis=0)
    allreduce(arrays, algorithm)
    for array in arrays:
        assert array.tobytes() == arrays[0].tobytes()
    if np.issubdtype(dtype, np.integer):
        assert np.array_equal(arrays[0], expected)
    else:
        error = np.abs(arrays[0].astype(complex) - expected)
        assert np.all(error <= 2 * k * np.finfo(dtype).eps * scale)


@given(NAMES, DEVICES, SIZES, NUMBERS, st.integers(1, 400))
def test_blocks_change_no_bit(algorithm, k, n, dtype, block):
    whole = device_arrays(n, k, n, np.dtype(dtype))
    in_blocks = [array.copy() for array in whole]
    allreduce(whole, algorithm)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "_BLOCK", block)
        allreduce(in_blocks, algorithm)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(whole, in_blocks, strict=True))


@pytest.mark.parametrize("algorithm", ["naive", "host"])
@pytest.mark.parametrize("k", [1, 2, 5, 33])
def test_sums_in_device_order_are_equal_to_the_bit(algorithm, k):
    arrays = device_arrays(k, k, (3, 37), np.dtype("float32"))
    expected = reduce(np.add, arrays)
    allreduce(arrays, algorithm)
    assert arrays[0].tobytes() == expected.tobytes()


def test_the_arrays_that_were_given_are_changed_also_if_they_are_not_contiguous():
    buffers = [np.arange(12).reshape(3, 4), np.ones((3, 4), int)]
    allreduce([buffer.T for buffer in buffers])
    assert np.array_equal(buffers[0], np.arange(12).reshape(3, 4) + 1)
    assert np.array_equal(buffers[1], buffers[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_reach_every_device(algorithm, bad):
    arrays = [np.ones(5), np.array([1, bad, 1, 1, 1]), np.ones(5)]
    allreduce(arrays, algorithm)
    for array in arrays:
        assert np.array_equal(array, [3, bad, 3, 3, 3], equal_nan=True)


@given(NAMES, DEVICES, SIZES)
def test_no_round_reads_what_it_writes(algorithm, k, n):
    for sends in plan(algorithm, k, n).rounds:
        written = defaultdict(set)
        for send in sends:
            written[send.target] |= set(range(send.start, send.stop))
        for send in sends:
            assert send.source != send.target
            assert not written[send.source] & set(range(send.start, send.stop))


@settings(max_examples=300)
@given(DEVICES, SIZES)
@example(4, 6)  # with the larger parts first, the ring would break its budget by one element
def test_no_device_moves_more_than_its_budget(k, n):
    depth, part = ceil(log2(k)), ceil(n / k)
    out_and_in = {  # elements that the busiest node may send, and may receive
        "naive": (k - 1) * n,
        "host": k * n,
        "sharded": 2 * (k - 1) * part,
        "tree": (depth + 1) * n,
        "ring": ceil(2 * (k - 1) * n / k),
    }
    for algorithm, budget in out_and_in.items():
        schedule = plan(algorithm, k, n)
        assert max(schedule.bytes_sent(8)) <= 8 * budget, algorithm
        assert max(schedule.bytes_received(8)) <= 8 * budget, algorithm


@pytest.mark.parametrize(
    ("algorithm", "rounds"),
    [
        ("naive", 2),
        ("host", 2),
        ("sharded", 2),
        ("tree", 8),
        ("ring", 18),
        ("hierarchical", 6),
    ],
)
def test_rounds_of_ten_devices(algorithm, rounds):
    assert plan(algorithm, 10, 1000).num_rounds == rounds


@given(DEVICES, SIZES, st.integers(1, 8))
def test_hierarchical_traffic_between_machines_does_not_grow_with_their_devices(k, n, per_machine):
    groups = machines(k, per_machine)
    assert [device for group in groups for device in group] == list(range(k))
    assert max(map(len, groups)) <= per_machine
    machine = {device: m for m, group in enumerate(groups) for device in group}
    out = [0] * len(groups)
    links = plan("hierarchical", k, n, per_machine=per_machine).bytes_per_link(1)
    for (source, target), size in links.items():
        if machine[source] != machine[target]:
            out[machine[source]] += size
    shards, m = min(map(len, groups)), len(groups)
    assert max(out) <= 2 * (m - 1) / m * n + shards


def test_links_ports_and_totals_tell_the_same_story():
    schedule = plan("naive", 4, 10)
    assert schedule.bytes_per_link(4)[3, 0] == schedule.bytes_per_link(4)[0, 3] == 40
    assert schedule.bytes_sent(4) == [120, 40, 40, 40]
    assert schedule.busiest_port(4) == [120, 120]
    assert plan("ring", 4, 8).busiest_port(1) == [2] * 6
    assert plan("host", 3, 5).bytes_received(1) == [5, 5, 5, 15]


def test_a_ring_only_talks_to_its_neighbour():
    assert set(plan("ring", 5, 100).bytes_per_link()) == {(i, (i + 1) % 5) for i in range(5)}


def test_one_device_sends_nothing_but_to_the_host():
    for algorithm in ALGORITHMS:
        assert plan(algorithm, 1, 10).num_rounds == (2 if algorithm == "host" else 0)


@given(st.integers(0, 1000), DEVICES)
def test_shards_are_near_equal_and_larger_ones_come_first(n, k):
    sizes = shard_sizes(n, k)
    assert len(sizes) == k and sum(sizes) == n
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=33))
def test_weighted_shards_are_within_one_of_their_share(n, parts):
    if sum(parts) == 0:
        parts[0] = 1
    weights = [part / sum(parts) for part in parts]
    sizes = shard_sizes(n, len(parts), weights)
    assert sum(sizes) == n
    assert all(abs(size - n * w) < 1 + 1e-6 for size, w in zip(sizes, weights, strict=True))
    assert all(size == 0 for size, w in zip(sizes, weights, strict=True) if w == 0)


def test_weights_by_hand():
    assert shard_sizes(256, 2, [0.8, 0.2]) == [205, 51]
    assert shard_sizes(10, 3, [1 / 3] * 3) == [4, 3, 3]
    assert shard_sizes(10_000_000, 2, [0.5 + 4e-7, 0.5 + 4e-7]) == [5_000_000, 5_000_000]


@pytest.mark.parametrize(
    "weights",
    [
        [0.5, 0.6],
        [0.5],
        [1.5, -0.5],
        [np.nan, 1.0],
        [np.inf, 0.0],
        [0.0, 0.0],
    ],
)
def test_bad_weights_are_named(weights):
    with pytest.raises(CollectiveError) as error:
        shard_sizes(10, 2, weights)
    assert str([float(weight) for weight in weights]) in str(error.value)


@pytest.mark.parametrize(
    ("n", "k", "named"),
    [(10, 0, "k is 0"), (10, -2, "k is -2"), (10, 10**400, "k is 10"), (-1, 2, "n is -1")],
)
def test_bad_counts_are_named(n, k, named):
    for ask in (lambda: shard_sizes(n, k), lambda: plan("ring", k, n)):
        with pytest.raises(CollectiveError, match=named):
            ask()


@pytest.mark.parametrize(
    "weights", [{0: 0.5, 1: 0.5}, {0.4, 0.6}, "01", 0.5, [None, 1], [[1], [0]]]
)
def test_weights_without_an_order_or_numbers_are_refused(weights):
    with pytest.raises(CollectiveError, match="k = 2 finite non-negative numbers"):
        shard_sizes(10, 2, weights)


def test_split_gives_views_in_order():
    X = np.arange(24).reshape(6, 4)
    pieces = split(X, [3, 0, 2, 1])
    assert [len(piece) for piece in pieces] == [3, 0, 2, 1]
    assert np.array_equal(np.concatenate(pieces), X)
    assert all(np.shares_memory(X, piece) for piece in pieces if len(piece))


@pytest.mark.parametrize("sizes", [[3, 2], [7, -1], [], [4, 3]])
def test_split_refuses_sizes_that_do_not_fit(sizes):
    with pytest.raises(CollectiveError, match="6 rows"):
        split(np.zeros((6, 4)), sizes)
    with pytest.raises(CollectiveError, match="single number"):
        split(np.float32(1), [1])


def read_only():
    array = np.ones(3)
    array.flags.writeable = False
    return array


shared = np.ones(4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "at least one"),
        ([np.ones(3), np.ones(4)], r"\(3,\)', '\(4,\)"),
        ([np.ones(3), np.ones(3, "float32")], "float64.*float32"),
        ([np.ones(3), [1, 1, 1]], "NumPy"),
        ([np.ones(2, bool), np.ones(2, bool)], "bool"),
        ([np.ones(3), read_only()], "device 1 is 'read-only'"),
        ([shared, shared], "0 and 1 share memory"),
        ([np.ones(2), shared[:2], shared[1:3]], "1 and 2 share memory"),
    ],
)
def test_allreduce_refuses(arrays, message):
    with pytest.raises(CollectiveError, match=message):
        allreduce(arrays)


def test_unknown_algorithm_and_machine_size():
    with pytest.raises(CollectiveError, match=r"'star'.*naive.*ring"):
        allreduce([np.ones(2)], "star")
    with pytest.raises(CollectiveError, match="per_machine is 0"):
        allreduce([np.ones(2)], "hierarchical", per_machine=0)


def test_hierarchical_shares_the_work_inside_a_machine():
    in_and_out, ring_between_two = 2 * 3 * 16, 2 * 8
    schedule = plan("hierarchical", 8, 64, per_machine=4)
    assert schedule.bytes_sent(1) == [in_and_out + ring_between_two] * 8
