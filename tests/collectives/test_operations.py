"""Every collective as a plan: against NumPy, and against PyTorch's own between real processes."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy_collectives import expected

from d2lmgpu.collectives.execution import carry_out
from d2lmgpu.collectives.operations import COLLECTIVES, collective
from d2lmgpu.collectives.schedules import CollectiveError, Schedule
from d2lmgpu.launch import launch

KINDS = [(name, algorithm) for name, algorithms in COLLECTIVES.items() for algorithm in algorithms]
FREE = -(10**6)  # in memory that is free: no sum that is a result may have it


def done(wanted, given):
    """What each rank gets by the plan of a collective, carried out on NumPy arrays."""
    arrays = [np.full(wanted.schedule.size, FREE) for _ in given]
    for rank, (array, values) in enumerate(zip(arrays, given, strict=True)):
        for part in wanted.held[rank]:
            start = rank * given.shape[1] if wanted.schedule.size > given.shape[1] else 0
            array[part] = values[part.start - start : part.stop - start]
    carry_out(wanted.schedule, arrays)
    return [
        np.concatenate([array[:0], *(array[part] for part in wanted.result[rank])])
        for rank, array in enumerate(arrays)
    ]


@given(st.sampled_from(KINDS), st.integers(1, 17), st.integers(0, 60), st.integers(0, 99))
def test_each_rank_gets_what_numpy_says(kind, k, n, seed):
    given = np.random.default_rng(seed).integers(-9, 10, (k, n))
    for got, right in zip(
        done(collective(kind[0], k, n, kind[1]), given), expected(kind[0], given), strict=True
    ):
        assert np.array_equal(got, right)


@given(st.sampled_from(KINDS), st.integers(1, 17), st.integers(0, 60))
def test_no_round_reads_what_it_writes(kind, k, n):
    for sends in collective(kind[0], k, n, kind[1]).schedule.rounds:
        written = defaultdict(set)
        for send in sends:
            assert send.source != send.target
            written[send.target] |= set(range(send.start, send.stop))
        for send in sends:
            assert not written[send.source] & set(range(send.start, send.stop))


@pytest.mark.parametrize(
    ("name", "algorithm", "rounds", "sent"),
    [  # of 8 ranks with 800 elements: rounds, and elements that the busiest rank sends
        ("broadcast", "tree", 3, 3 * 800),
        ("broadcast", "direct", 1, 7 * 800),
        ("reduce", "tree", 3, 800),
        ("reduce", "direct", 1, 800),
        ("all_reduce", "ring", 14, 2 * 700),
        ("all_gather", "ring", 7, 700),
        ("all_gather", "direct", 1, 700),
        ("reduce_scatter", "ring", 7, 700),
        ("reduce_scatter", "direct", 1, 700),
        ("all_to_all", "direct", 1, 700),
        ("send", "direct", 1, 800),
        ("barrier", "dissemination", 3, 700),
    ],
)
def test_rounds_and_elements_of_eight_ranks(name, algorithm, rounds, sent):
    schedule = collective(name, 8, 800, algorithm).schedule
    assert (schedule.num_rounds, max(schedule.bytes_sent(1))) == (rounds, sent)


def in_pytorch(given):
    """What this rank gets of PyTorch's collectives, by the names of ours."""
    import torch
    import torch.distributed as dist

    rank, k = dist.get_rank(), dist.get_world_size()
    own = torch.tensor(given[rank])
    n = len(own) // k

    got = {name: own.clone() for name in ("broadcast", "reduce", "all_reduce", "send")}
    dist.broadcast(got["broadcast"], src=0)
    dist.reduce(got["reduce"], dst=0)
    dist.all_reduce(got["all_reduce"])
    if rank == 0:
        dist.send(got["send"], dst=1)
    elif rank == 1:
        dist.recv(got["send"], src=0)
    got["all_gather"], got["reduce_scatter"], got["all_to_all"] = (
        torch.full((size,), FREE) for size in (len(own), n, len(own))
    )
    dist.all_gather_into_tensor(got["all_gather"], own[rank * n : (rank + 1) * n].clone())
    dist.reduce_scatter_tensor(got["reduce_scatter"], own.clone())
    dist.all_to_all_single(got["all_to_all"], own)
    return {name: values.numpy() for name, values in got.items()}


def test_pytorchs_own_collectives_give_the_same(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:3")
    k = 3
    given = np.random.default_rng(0).integers(-9, 10, (k, 2 * k))
    theirs = launch(in_pytorch, given, num_processes=k)
    for name in theirs[0]:
        for algorithm in COLLECTIVES[name]:
            for rank, ours in enumerate(done(collective(name, k, 2 * k, algorithm), given)):
                if ours.size:  # the others' memory after a reduce is free
                    assert np.array_equal(theirs[rank][name], ours), (name, algorithm, rank)


def test_what_is_no_collective_is_refused():
    for wrong in (("gather", 2, 2), ("reduce", 0, 2), ("reduce", 2, -1), ("reduce", 2, 2, "ring")):
        with pytest.raises(CollectiveError):
            collective(*wrong)
    reduce = collective("reduce", 2, 3).schedule
    for arrays in (None, [np.ones(3)], [np.ones(3), np.ones(2)], [np.ones(2), np.ones(2)]):
        with pytest.raises(CollectiveError):
            carry_out(reduce, arrays)
    with pytest.raises(CollectiveError):
        carry_out("reduce", [np.ones(3)] * 2)
    assert isinstance(reduce, Schedule)
