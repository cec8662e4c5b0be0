"""What links carry, measured and judged: slow ones are named, others are not."""

import socket
from itertools import combinations
from statistics import median
from time import perf_counter

import pytest

from d2lmgpu.__main__ import main
from d2lmgpu.costmodel.presets import PRESETS
from d2lmgpu.course import links
from d2lmgpu.course.links import Links
from d2lmgpu.launch import launch
from d2lmgpu.machine.hardware import shared_memory
from d2lmgpu.torch.links import SUMS

GB = 1e9
HOST = socket.gethostname()


def made_up(rates, hosts=None, gpus=(), shared=2**33, sums=((2**26, 0.01),)):
    """Links of these bytes a second, (i, j) -> rate."""
    k = 1 + max(max(pair) for pair in rates)
    hosts = hosts or k * ["n1"]
    pairs = {pair: (5e-6, rate) for pair, rate in rates.items()}
    return Links([*hosts], pairs, [*sums], dict.fromkeys(hosts, shared), [*gpus])


def equal(k, rate=10 * GB):
    return dict.fromkeys(combinations(range(k), 2), rate)


def test_equal_links_are_not_accused():
    for k in (2, 3, 4):
        assert links.problems(made_up(equal(k))) == []
        noisy = {pair: 10 * GB * (0.6 + 0.1 * sum(pair) % 0.5) for pair in equal(k)}
        assert links.problems(made_up(noisy)) == []


def test_one_slow_pair_is_named_by_its_ranks():
    (problem,) = links.problems(made_up(equal(4) | {(1, 3): GB}))
    assert problem.startswith("ranks 1 and 3 (n1): 1 GB/s, the fastest link of this kind 10 GB/s")


@pytest.mark.parametrize("k", [3, 4, 8])
def test_a_rank_behind_a_slow_link_is_named_once(k):
    rates = {pair: GB if 2 in pair else 10 * GB for pair in equal(k)}
    (problem,) = links.problems(made_up(rates))
    assert problem.startswith("rank 2: all its links carry about 1 GB/s")


def test_a_host_behind_a_slow_cable_is_named_and_links_inside_of_hosts_are_another_kind():
    hosts = ["n1", "n1", "n2", "n2", "n3", "n3"]
    rates = {}
    for pair in equal(6):
        names = {hosts[rank] for rank in pair}
        rates[pair] = 100 * GB if len(names) == 1 else GB if "n3" in names else 10 * GB
    (problem,) = links.problems(made_up(rates, hosts))
    assert problem.startswith("host n3: all its links carry about 1 GB/s")


def test_of_two_hosts_no_one_can_say_which_is_slow():
    assert links.problems(made_up({(0, 1): GB}, ["n1", "n2"])) == []


def test_a_machine_far_below_its_published_bus_bandwidth_is_named_with_the_source():
    expected = PRESETS["A100"].link_among(8).bandwidth
    gpus = 8 * ["GPU 0: NVIDIA A100-SXM4-80GB"]
    for share, number in ((0.95, 0), (0.5, 1)):
        seconds = 2**26 * 2 * 7 / 8 / (share * expected)
        problems = links.problems(made_up(equal(8), gpus=gpus, sums=[(2**26, seconds)]))
        assert len(problems) == number
    assert "235 GB/s (measured: NVIDIA/nccl" in problems[0] and "118 GB/s" in problems[0]


@pytest.mark.parametrize("shared, words", [(None, "no /dev/shm"), (2**26, "/dev/shm has 64 MiB")])
def test_too_little_shared_memory_is_named(shared, words):
    (problem,) = links.problems(made_up(equal(2), shared=shared))
    assert f"host n1: {words}" in problem and "--shm-size" in problem


def test_shared_memory_is_that_of_the_system(tmp_path):
    size = shared_memory()
    with open("/proc/mounts", encoding="utf-8") as mounts:
        there = any(line.split()[1] == "/dev/shm" for line in mounts)
    assert size is not None and (size > 0 or not there)
    assert shared_memory(tmp_path / "none") is None


def echo(size, repeats):
    """Seconds of a round trip of so many bytes between two ranks, by gloo, measured otherwise."""
    import torch
    from torch import distributed as dist

    data = torch.ones(size // 8, dtype=torch.float64)
    seconds = []
    for _ in range(repeats):
        dist.barrier()
        start = perf_counter()
        for source in (0, 1):
            dist.broadcast(data, source)
        seconds.append(perf_counter() - start)
    return median(seconds)


def test_two_ranks_here_are_measured():
    """Wide bounds: other work shares the cores. `make bench` holds them to 10 %."""
    measured = links.measure(2)
    assert measured.hosts == [HOST, HOST] and list(measured.pairs) == [(0, 1)]
    latency, bandwidth = measured.pairs[0, 1]
    assert 1e-6 < latency < 0.05 and 1e6 < bandwidth < 1e12
    sizes = [size for size, _ in measured.sums]
    assert sizes == list(SUMS[: len(sizes)]) and sizes
    size, seconds = measured.sums[0]
    assert measured.bus_bandwidth(0) == pytest.approx(size / seconds)  # 2(k-1)/k is 1 for two
    other = 2 * 2**22 / launch(echo, 2**22, 5, num_processes=2)[0]
    assert 0.02 < bandwidth / other < 50


def test_the_command_prints_and_ends_with_0_or_1(monkeypatch, capsys):
    asked = []
    slow = equal(3) | {(0, 1): GB, (0, 2): GB}
    for rates, status, last in (
        (equal(3), 0, "Nothing is off."),
        (slow, 1, "rank 0: all its links"),
    ):
        answer = made_up(rates)
        monkeypatch.setattr(links, "measure", lambda *given, a=answer: asked.append(given) or a)
        assert main(["doctor", "--links", "--devices", "3"]) == status
        printed = capsys.readouterr().out.splitlines()
        assert printed[-1].startswith(last)
        assert "bus bandwidth" in printed[4] and "n1 (/dev/shm): 8,192 MiB" in printed[5]
    assert asked == 2 * [(3, None)]


def test_one_rank_is_refused(capsys):
    assert main(["doctor", "--links", "--devices", "1"]) == 1
    assert "One rank has no link" in capsys.readouterr().err
