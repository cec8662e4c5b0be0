"""The cost model against worked examples, schedules, simulations and its own limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.collectives.schedules import ALGORITHMS, plan
from d2lmgpu.costmodel.gpus import expected_rate
from d2lmgpu.costmodel.model import (
    PRESETS,
    CostError,
    Link,
    Machine,
    Work,
    best_num_gpus,
    exchange_seconds,
    exposed_seconds,
    flat_ring_seconds,
    machine_seconds,
    step,
    wait_samples,
    wait_seconds,
)
from d2lmgpu.costmodel.presets import HOWS, NETWORKS, Source, tcp
from d2lmgpu.costmodel.speedups import DELAYS, expected_speedup

MB, GB, MS = 1e6, 1e9, 1e-3
FORMULAS = sorted(set(ALGORITHMS) - {"hierarchical"})
SECONDS = st.floats(0, 10)
TIMES = st.floats(1e-3, 10)


def schedule_seconds(schedule, link):
    """Time of a schedule of 4-byte numbers: a round takes as long as its busiest port."""
    busiest = schedule.busiest_port(itemsize=4)
    return len(busiest) * link.latency + sum(busiest) / link.bandwidth


@pytest.mark.parametrize(
    ("algorithm", "k", "bandwidth", "milliseconds"),
    [
        ("naive", 4, 16, 60),
        ("host", 4, 16, 80),
        ("sharded", 4, 16, 15),
    ],
)
def test_the_worked_example_of_d2l(algorithm, k, bandwidth, milliseconds):
    link = Link(0, bandwidth * GB)
    assert exchange_seconds(algorithm, k, 160 * MB, link) == pytest.approx(milliseconds * MS)
    schedule = plan(algorithm, k, 40_000_000)
    assert schedule_seconds(schedule, link) == pytest.approx(milliseconds * MS)


def test_the_ring_of_d2l_takes_about_6_ms():
    link = Link(0, 3 * 18 * GB)
    assert exchange_seconds("ring", 8, 160 * MB, link) == pytest.approx(5.185 * MS, rel=1e-3)
    d2l_rounds_up = exchange_seconds("ring", 10**6, 160 * MB, link)  # (k-1)/k taken as 1
    assert round(d2l_rounds_up / MS) == 6


@given(st.sampled_from(FORMULAS), st.integers(2, 33), st.integers(1, 50), TIMES, TIMES)
def test_formulas_are_the_times_of_the_schedules(algorithm, k, parts, latency, bandwidth):
    link, n = Link(latency, bandwidth), parts * k
    expected = schedule_seconds(plan(algorithm, k, n), link)
    assert exchange_seconds(algorithm, k, 4 * n, link) == pytest.approx(expected, rel=1e-9)


def test_tree_beats_ring_for_short_messages_and_ring_beats_tree_for_long_ones():
    link = Link(10e-6, 10 * GB)
    times = {
        size: [exchange_seconds(name, 64, size, link) for name in ("tree", "ring")]
        for size in (1e3, 1e9)
    }
    assert times[1e3][0] < times[1e3][1] and times[1e9][1] < times[1e9][0]


def test_several_machines_are_priced_as_the_hierarchical_schedule():
    link, network = Link(0, 100.0), Link(0, 1.0)
    machine = replace(PRESETS["K80"], devices=4, link=link, network=network, shared=False)
    schedule = plan("hierarchical", 12, 120, per_machine=4)
    collect, *rings, hand_out = schedule.busiest_port(1)
    # four rings at once share the network of their machine
    expected = (collect + hand_out) / 100 + 4 * sum(rings) / 1
    assert machine_seconds(machine, 12, 120) == pytest.approx(expected)


def test_devices_that_share_a_path_slow_each_other_down():
    alone = replace(PRESETS["K80"], shared=False)
    assert machine_seconds(PRESETS["K80"], 4, 1e9) == pytest.approx(
        4 * machine_seconds(alone, 4, 1e9), rel=1e-3
    )


@given(SECONDS, SECONDS, st.integers(1, 40))
def test_hidden_communication_is_bounded_by_both_sides(exchange, backward, num_buckets):
    exposed = exposed_seconds(exchange, backward, num_buckets)
    last_bucket = exchange / num_buckets
    assert exposed >= max(last_bucket, exchange - backward) - 1e-9
    assert exposed <= exchange + 1e-9
    if exchange <= backward:
        assert exposed == pytest.approx(last_bucket, abs=1e-9)
    assert exposed_seconds(exchange, backward, num_buckets, overlap=False) == exchange


def test_overlap_by_hand():
    # buckets are full at 1, 2, 3 s and take 2 s each: sent at 3, 5, 7 s, 4 s after backward
    assert exposed_seconds(6, 3, 3) == pytest.approx(4)
    assert exposed_seconds(6, 3, 1) == pytest.approx(6)


@pytest.mark.parametrize("k", [1, 2, 8, 64])
def test_expected_waits_are_the_mean_of_simulated_ones(k):
    samples = wait_samples(k, 0.01, num_steps=40_000, seed=k)
    assert samples.shape == (40_000,)
    spread = samples.std() / np.sqrt(len(samples))
    assert abs(samples.mean() - wait_seconds(k, 0.01)) < 5 * spread
    assert np.array_equal(samples, wait_samples(k, 0.01, 40_000, seed=k))
    assert not np.array_equal(samples, wait_samples(k, 0.01, 40_000, seed=k + 1))


@given(st.integers(1, 300), st.floats(1e-6, 10), st.integers(0, 9))
def test_more_devices_wait_longer_and_never_less_than_one(k, mean_delay, seed):
    assert wait_seconds(k, mean_delay) < wait_seconds(k + 1, mean_delay)
    assert wait_seconds(k, 2 * mean_delay) == pytest.approx(2 * wait_seconds(k, mean_delay))
    assert wait_seconds(1, mean_delay) == mean_delay
    assert mean_delay * np.log(k) < wait_seconds(k, mean_delay) <= mean_delay * (np.log(k) + 1)
    assert (wait_samples(k, mean_delay, 5, seed) > 0).all()


@given(st.integers(1, 64), st.integers(1, 500), st.integers(0, 9))
def test_without_jitter_every_step_takes_the_same_time(k, batch_size, seed):
    assert wait_seconds(k, 0) == 0 and not wait_samples(k, 0, 20, seed).any()
    work, jitter = Work(1 * MB, 1 * MS), Work(1 * MB, 1 * MS, mean_delay=2 * MS)
    calm, late = (step(w, PRESETS["A100"], k, batch_size) for w in (work, jitter))
    assert calm.wait == 0 and calm.seconds == pytest.approx(calm.compute + calm.exposed)
    assert late.seconds == pytest.approx(calm.seconds + wait_seconds(k, 2 * MS))


def test_large_clusters_lose_efficiency_by_waiting_alone():
    work = Work(gradient_bytes=0, seconds_per_example=1e-3, mean_delay=2e-3)
    ks = [1, 8, 64, 1024]
    rates = [step(work, PRESETS["H100"], k, 32 * k).samples_per_second / k for k in ks]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] / rates[0] == pytest.approx((32 + 2) / (32 + 2 * 7.509), rel=1e-3)


@pytest.mark.parametrize("links", DELAYS)
@pytest.mark.parametrize("k", [1, 2, 8, 100])
def test_the_delay_of_published_runs_gives_their_speedup(links, k):
    expected, delay = expected_speedup(links, k), DELAYS[links]
    assert expected.low <= expected.middle <= expected.high
    harmonic = sum(1 / i for i in range(1, k + 1))
    assert expected.low == pytest.approx(k / (1 + delay.high * (harmonic - 1)))
    assert expected.middle == pytest.approx(k / (1 + delay.middle * (harmonic - 1)))


def test_gradients_of_16_bits_are_half_the_bytes():
    of = {bits: Work.of_parameters(25.6e6, 1 * MS, bits, messages=3) for bits in (16, 32)}
    assert of[32] == Work.of_parameters(25.6e6, 1 * MS, messages=3)
    assert of[32] == Work(102.4 * MB, 1 * MS, messages=3)
    assert of[16] == Work(51.2 * MB, 1 * MS, messages=3)


def test_a_step_by_hand():
    machine = Machine(
        "m", 4, Link(0, 1 * GB), NETWORKS["10 Gb Ethernet"], 1e12, 1e12, (), overlap=False
    )
    work = Work(
        gradient_bytes=100 * MB,
        seconds_per_example=1 * MS,
        load_seconds=0.1 * MS,
        issue_seconds=2 * MS,
        exchange_issue_seconds=1 * MS,
        one_process=True,
        mean_delay=4 * MS,
    )
    s = step(work, machine, 2, 101)
    assert s.load == pytest.approx(10.1 * MS)
    assert s.issue == pytest.approx(5 * MS)
    assert s.compute == pytest.approx(51 * MS)  # the larger shard
    assert s.wait == pytest.approx(6 * MS)
    assert s.exposed == s.exchange == pytest.approx(100 * MS)
    assert s.seconds == pytest.approx((10.1 + 51 + 6 + 100) * MS)
    assert s.communication_share == pytest.approx(100 / 167.1)
    assert s.samples_per_second == pytest.approx(101 / (167.1 * MS))
    own_process = step(replace(work, one_process=False), machine, 2, 101)
    assert own_process.load == pytest.approx(5.1 * MS)
    assert own_process.issue == pytest.approx(3 * MS)
    host_bound = step(replace(work, issue_seconds=200 * MS), machine, 2, 101)
    assert host_bound.seconds == pytest.approx((10.1 + 401) * MS)


def test_loading_is_hidden_where_the_host_does_not_wait_after_every_step():
    machine = Machine("m", 4, Link(0, 1 * GB), NETWORKS["10 Gb Ethernet"], 1e12, 1e12, ())
    work = Work(
        0,
        seconds_per_example=1 * MS,
        load_seconds=0.4 * MS,
        issue_seconds=20 * MS,
        one_process=True,
        waits=False,
    )
    assert step(work, machine, 1, 100).seconds == pytest.approx(100 * MS)  # 40 + 20 are hidden
    assert step(work, machine, 2, 100).seconds == pytest.approx(80 * MS)  # 40 + 2·20 hide 50
    waits = replace(work, waits=True)
    assert step(waits, machine, 1, 100).seconds == pytest.approx(140 * MS)
    assert step(waits, machine, 2, 100).seconds == pytest.approx(90 * MS)


def test_buckets_hide_communication():
    work = Work(gradient_bytes=1 * GB, seconds_per_example=1 * MS, bucket_bytes=100 * MB)
    s = step(work, PRESETS["A100"], 8, 8 * 60)
    assert s.exposed == pytest.approx(s.exchange / 10)  # 40 ms of backward hide the rest
    assert s.communication_share == pytest.approx(s.exposed / s.seconds)
    in_one = step(replace(work, bucket_bytes=2 * GB), PRESETS["A100"], 8, 8 * 60)
    assert in_one.exposed == in_one.exchange
    latencies = 14 * 3.4e-6  # a ring of eight
    assert s.exchange - in_one.exchange == pytest.approx(9 * latencies), "each bucket pays its own"


def test_strong_scaling_stops_and_weak_scaling_goes_on():
    work = Work(gradient_bytes=100 * MB, seconds_per_example=0.1 * MS)
    machine = PRESETS["V100 PCIe"]
    best = best_num_gpus(work, machine, batch_size=256, at_most=64)
    seconds = {k: step(work, machine, k, 256).seconds for k in range(1, 65)}
    assert seconds[best] == min(seconds.values())
    assert 1 < best < 64
    weak = {k: step(work, machine, k, 256 * k) for k in (1, 64)}
    assert weak[64].batch_size == 64 * 256
    assert weak[64].samples_per_second > weak[1].samples_per_second


def test_a_tiny_model_is_best_on_one_gpu():
    assert best_num_gpus(Work(1 * MB, 1e-7), PRESETS["V100 PCIe"], 256, at_most=8) == 1


NUMBERS = {"link", "network", "latencies", "flops", "matrix_flops"}


@pytest.mark.parametrize("name", PRESETS)
def test_each_number_of_a_preset_says_how_what_and_where(name):
    machine = PRESETS[name]
    wanted = NUMBERS | ({"bandwidths"} if machine.bandwidths else set())
    sourced = [field for source in machine.sources for field in source.fields.split(", ")]
    assert len(sourced) == len({*sourced}) and wanted <= {*sourced}
    for source in machine.sources:
        assert source.how in HOWS and len(source.counts) > 20 and len(source.where) > 20
        if source.how == "measured" and "link" in source.fields:
            assert "bus bandwidth" in source.counts, "what a machine sends: step() needs it"


def test_what_was_measured_as_2n_over_time_is_sent_by_the_model_in_that_time():
    """d2l-neu, multi-gpu-practice.md: beta = 4.5e9, and an exchange takes 2N/beta for any k."""
    for k in (2, 4):
        seconds = machine_seconds(PRESETS["RTX 4090"], k, 44.7 * MB)
        assert seconds == pytest.approx(2 * 44.7 * MB / (4.5 * GB), rel=0.01)


def test_equal_links_take_equal_times():
    """H100 and H200 have the same NVLink; 8 H200 measured 367.61 GB/s of bus bandwidth."""
    h100, h200 = (machine_seconds(PRESETS[name], 8, 1 * GB) for name in ("H100", "H200"))
    assert h100 == h200 == pytest.approx(2 * 7 / 8 * GB / (367.61 * GB) + 14 * 3.4e-6)


def test_an_a100_has_what_nccl_allows_it():
    assert PRESETS["A100"].link.bandwidth == 235 * GB  # tuning.cc, `compCap80`


@pytest.mark.parametrize(("k", "bandwidth"), [(2, 25), (3, 62.5), (4, 100), (8, 150)])
def test_two_v100_of_a_box_are_joined_by_one_link(k, bandwidth):
    link = PRESETS["V100 NVLink"].link_among(k)
    assert link == Link(3.4e-6, bandwidth * GB)


@pytest.mark.parametrize(("k", "milliseconds"), [(16, 6.9), (128, 8.2), (1024, 15.7)])
def test_a_flat_ring_pays_the_networks_latency_only_between_machines(k, milliseconds):
    """By NCCL's tuning.cc: (steps - steps between machines) * intra + steps between * inter."""
    steps, between = 2 * (k - 1), 2 * (k // 8 - 1)
    by_nccl = (steps - between) * 3.4e-6 + between * 9.6e-6 + steps / k * 45 * MB / (12.5 * GB)
    flat = flat_ring_seconds(PRESETS["V100 NVLink"], k, 45 * MB)
    assert flat == pytest.approx(by_nccl) == pytest.approx(milliseconds * MS, rel=0.01)
    assert flat > machine_seconds(PRESETS["V100 NVLink"], k, 45 * MB)


def test_a_flat_ring_inside_a_machine_is_the_ring():
    a100 = PRESETS["A100"]
    assert flat_ring_seconds(a100, 8, 45 * MB) == machine_seconds(a100, 8, 45 * MB)


def test_presets_have_sensible_numbers():
    for machine in PRESETS.values():
        assert 1e12 < machine.flops <= machine.matrix_flops < 1e16
        assert 1e9 < machine.link.bandwidth < 1e12 and machine.network.bandwidth >= 1.25e9
    wanted = {"K80", "M60", "V100 PCIe", "V100 NVLink", "A100", "H100", "H200"}
    assert wanted <= set(PRESETS)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "fast"])
def test_bandwidth_must_be_above_zero(bad):
    with pytest.raises(CostError, match=f"bandwidth is {bad!r}.*above 0"):
        Link(0, bad)


def test_numbers_of_numpy_are_numbers():
    assert Link(np.float32(0), np.int64(4)) == Link(0, 4)
    assert exchange_seconds("ring", np.int64(2), np.int64(4), Link(0, 4)) == 1


@pytest.mark.parametrize("bad", [-1e-6, float("nan"), float("inf")])
def test_latency_must_not_be_negative(bad):
    with pytest.raises(CostError, match=f"latency is {bad!r}.*from 0 up"):
        Link(bad, 1)


LINK, WORK, V100 = Link(0, 1), Work(1, 1), PRESETS["V100 PCIe"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: step(WORK, V100, 0, 256), "k is 0"),
        (lambda: exchange_seconds("ring", 0, 1, LINK), "k is 0"),
        (lambda: wait_seconds(-1, 1), "k is -1"),
        (lambda: wait_samples(0, 1, 1), "k is 0"),
        (lambda: best_num_gpus(WORK, V100, 256, 0), "at_most is 0"),
        (lambda: step(WORK, V100, 1, 0), "batch_size is 0"),
        (lambda: exchange_seconds("star", 2, 1, LINK), "'star'.*ring"),
        (lambda: exchange_seconds("ring", 2, float("nan"), LINK), "num_bytes is nan"),
        (lambda: wait_seconds(2, -1), "mean_delay is -1"),
        (lambda: wait_samples(2, -1, 1), "mean_delay is -1"),
        (lambda: exposed_seconds(-1, 1, 1), "exchange is -1"),
        (lambda: exposed_seconds(1, float("nan"), 1), "backward is nan"),
        (lambda: Work.of_parameters(1, 1, 8), "gradient_bits is 8.*16 or 32"),
        (lambda: Work.of_parameters(-1, 1), "parameters is -1"),
        (lambda: expected_speedup("NVLINK", 2), "links is 'NVLINK'.*NVSwitch"),
        (lambda: expected_speedup("NVLink", 0), "k is 0"),
        (lambda: expected_rate(0, "V100", "H100", "16 bit"), "rate is 0"),
        (lambda: expected_rate(1, "V100", "H1000", "16 bit"), "wanted_on is 'H1000'.*RTX 4090"),
        (lambda: expected_rate(1, "V100", "H100", "int8"), "format is 'int8'.*tf32"),
        (lambda: Work(1, -1), "seconds_per_example is -1"),
        (lambda: Work(1, 1, bucket_bytes=0), "bucket_bytes is 0"),
        (lambda: Work(1, 1, backward_share=1.5), "backward_share is 1.5"),
        (lambda: step(WORK, V100, 2.5, 256), "k is 2.5"),
        (lambda: machine_seconds(PRESETS["K80"], 0, 1e6), "k is 0"),
        (lambda: exposed_seconds(1, 1, 0), "num_buckets is 0"),
        (lambda: exposed_seconds(1, 1, -1), "num_buckets is -1"),
        (lambda: Work(1, 1, algorithm="rign"), "'rign'.*ring"),
        (lambda: Link(True, 1), "latency is True"),
        (lambda: replace(V100, devices=0), "devices is 0"),
        (lambda: replace(V100, flops=float("nan")), "flops is nan"),
        (lambda: replace(V100, matrix_flops=0), "matrix_flops is 0"),
        (lambda: replace(V100, sources="a sheet"), "sources is 'a sheet'"),
        (lambda: replace(V100, bandwidths=((4, 1), (2, 1))), "bandwidths is"),
        (lambda: replace(V100, bandwidths=((2, 0),)), "bandwidths is"),
        (lambda: Source("link", "guessed", "", ""), "how is 'guessed'"),
        (lambda: V100.link_among(0), "k is 0"),
        (lambda: flat_ring_seconds(V100, 0, 1), "k is 0"),
    ],
)
def test_bad_input_is_named(ask, message):
    with pytest.raises(CostError, match=message):
        ask()


def test_what_tcp_carries_is_counted_frame_by_frame():
    """Full frames: 1500 bytes and Ethernet's 14, of which 52 are headers of IP and TCP."""
    frames, rate = 1_000_000, 12.5e6
    seconds = frames * (1500 + 14) / rate
    assert np.isclose(tcp(rate).bandwidth * seconds, frames * (1500 - 52))
    for wrong in (0, -1, "1gbit", None):
        with pytest.raises(CostError):
            tcp(wrong)
