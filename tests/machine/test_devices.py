"""The rule that picks devices, and what it refuses."""

import os

import numpy as np
import pytest

from d2lmgpu.machine import devices
from d2lmgpu.machine.devices import DeviceError, RunError


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.delenv("D2LMGPU_DEVICES", raising=False)
    monkeypatch.setattr(devices, "num_cores", lambda: 2)


@pytest.mark.parametrize(
    "choice, gpus, expected",
    [
        (None, 0, ("cpu", 2)),
        (None, 3, ("gpu", 3)),
        ("", 0, ("cpu", 2)),
        ("", 3, ("gpu", 3)),
        ("auto", 0, ("cpu", 2)),
        ("auto", 1, ("gpu", 1)),
        ("gpu", 2, ("gpu", 2)),
        ("cpu", 0, ("cpu", 2)),
        ("cpu", 8, ("cpu", 2)),
        ("cpu:1", 8, ("cpu", 1)),
        ("cpu:16", 0, ("cpu", 16)),
    ],
)
def test_the_rule(monkeypatch, choice, gpus, expected):
    if choice is not None:
        monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    assert devices.available(gpus) == expected


def test_one_core_is_two_devices_of_which_one_is_simulated(monkeypatch):
    monkeypatch.setattr(devices, "num_cores", lambda: 1)
    assert devices.available(0) == ("cpu", 2)
    assert devices.sharing(2, 0) == "simulated"


@pytest.mark.parametrize("choice", [" ", "GPU", "cuda", "cpu:", "cpu:0", "cpu:-1", "cpu:2.0", "2"])
def test_an_unknown_choice_is_refused(monkeypatch, choice):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    with pytest.raises(DeviceError, match="Allowed: auto, gpu, cpu, gpu:N and cpu:N") as refused:
        devices.available(2)
    assert repr(choice) in str(refused.value)


def test_gpus_that_are_not_there_are_never_replaced(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "gpu")
    with pytest.raises(DeviceError, match=r"sees no GPU.* set it to cpu"):
        devices.available(0)


@pytest.mark.parametrize("k", [0, -1, 1.0, "2", None, True, float("nan")])
def test_what_is_no_number_of_devices(k):
    with pytest.raises(DeviceError, match="give a whole number from 1 up") as refused:
        devices.first(k, 4)
    assert repr(k) in str(refused.value)


@pytest.mark.parametrize("i", [-1, 0.0, "0", None])
def test_what_is_no_index_of_a_device(i):
    with pytest.raises(DeviceError, match="give an index from 0 up") as refused:
        devices.place(i, 4)
    assert repr(i) in str(refused.value)


@pytest.mark.parametrize("k", [1, 3, np.int64(2)])
def test_devices_that_are_there(k):
    assert devices.first(k, 3) == [("gpu", i) for i in range(k)]
    assert devices.place(k - 1, 3) == ("gpu", k - 1)


@pytest.mark.parametrize(
    "gpus, k, names", [(0, 3, "cpu(0), cpu(1)"), (3, 4, "gpu(0), gpu(1), gpu(2)")]
)
def test_one_too_many_is_refused_with_a_list_and_a_way_out(monkeypatch, gpus, k, names):
    for call in (lambda: devices.first(k, gpus), lambda: devices.place(k - 1, gpus)):
        with pytest.raises(DeviceError) as refused:
            call()
        assert f"{k} devices were asked for, there are {k - 1}: {names}." in str(refused.value)
        assert f"D2LMGPU_DEVICES=cpu:{k}" in str(refused.value)
    monkeypatch.setenv("D2LMGPU_DEVICES", f"cpu:{k}")  # the way out leads out
    assert devices.first(k, gpus) == [("cpu", i) for i in range(k)]


def test_a_long_list_is_cut():
    with pytest.raises(DeviceError, match=r"there are 10: .*gpu\(7\), …\. "):
        devices.first(11, 10)


@pytest.mark.parametrize(
    "run",
    [(1, 1, 1e-9), (2, 2, 0.2), (3, 256, 1), (4, np.int64(7), np.float32(0.1))],
)
def test_runs_that_are_right(run):
    devices.check_run(*run)


@pytest.mark.parametrize("batch_size", [0, -256, 25.6, "256", None, True])
def test_batch_sizes_that_are_none(batch_size):
    with pytest.raises(RunError, match="give a whole number from 1 up") as refused:
        devices.check_run(1, batch_size, 0.1)
    assert f"batch_size={batch_size!r}" in str(refused.value)


@pytest.mark.parametrize("lr", [0, -0.1, float("nan"), float("inf"), "0.1", None, 1j])
def test_learning_rates_that_are_none(lr):
    with pytest.raises(RunError, match="a finite number above 0") as refused:
        devices.check_run(1, 256, lr)
    assert f"lr={lr!r}" in str(refused.value)


def test_a_batch_that_leaves_a_device_without_work_is_refused():
    with pytest.raises(RunError, match="batch_size=3 is below num_gpus=4"):
        devices.check_run(4, 3, 0.1)


@pytest.mark.parametrize(
    "choice, gpus, k, expected",
    [
        ("auto", 0, 1, "one device"),
        ("auto", 0, 2, "in parallel"),
        ("cpu:3", 0, 3, "simulated"),
        ("cpu:3", 4, 3, "simulated"),
        ("auto", 4, 4, "in parallel"),
    ],
)
def test_only_what_overlaps_is_measured(monkeypatch, choice, gpus, k, expected):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    assert devices.sharing(k, gpus) == expected


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", None])
def test_what_is_no_number_of_devices_does_not_overlap(k):
    with pytest.raises(DeviceError, match="give a whole number from 1 up"):
        devices.sharing(k, 0)


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.undo()
    assert 1 <= devices.num_cores() <= os.cpu_count()


@pytest.mark.parametrize(
    "choice, gpus, expected",
    [
        ("gpu:1", 4, [("gpu", 0)]),
        ("gpu:4", 1, [("gpu", 0)] * 4),
        ("gpu:3", 2, [("gpu", 0), ("gpu", 1), ("gpu", 0)]),
        ("gpu:1,cpu:2", 1, [("gpu", 0), ("cpu", 0), ("cpu", 1)]),
        ("cpu:1,gpu:2", 2, [("cpu", 0), ("gpu", 0), ("gpu", 1)]),
        ("gpu,cpu", 2, [("gpu", 0), ("gpu", 1), ("cpu", 0), ("cpu", 1)]),
        (
            "gpu:1,cpu:1,gpu:2,cpu:1",
            2,
            [("gpu", 0), ("cpu", 0), ("gpu", 1), ("gpu", 0), ("cpu", 1)],
        ),
    ],
)
def test_replicas_take_the_gpus_in_turn_and_lists_go_on(monkeypatch, choice, gpus, expected):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    assert devices.places(gpus) == expected
    for k in range(1, len(expected) + 1):
        assert devices.first(k, gpus) == expected[:k]
        assert devices.place(k - 1, gpus) == expected[k - 1]
    kinds = {kind for kind, _ in expected}
    assert devices.available(gpus) == (min(kinds) if len(kinds) == 1 else "mixed", len(expected))


@pytest.mark.parametrize(
    "choice, part",
    [
        ("gpu:0", "gpu:0"),
        ("gpu:-1", "gpu:-1"),
        ("gpu:x", "gpu:x"),
        ("gpu:", "gpu:"),
        ("gpu:1,", ""),
        (",", ""),
        ("gpu:1,,cpu:1", ""),
        ("gpu:1, cpu:1", " cpu:1"),
        ("gpu:1;cpu:1", "gpu:1;cpu:1"),
        ("auto,cpu:1", "auto"),
        ("gpu:1,cpu:0", "cpu:0"),
        ("gpu:1,tpu:1", "tpu:1"),
        ("gpu:1000", "gpu:1000"),
        ("gpu:²", "gpu:²"),
    ],
)
def test_a_part_that_names_no_devices_is_named(monkeypatch, choice, part):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    for gpus in (0, 2):
        with pytest.raises(DeviceError) as refused:
            devices.places(gpus)
        assert f"{choice!r} is unknown: {part!r} names no devices. Allowed:" in str(refused.value)


@pytest.mark.parametrize("choice", ["gpu:2", "gpu:1,cpu:2", "cpu:2,gpu"])
def test_gpus_of_a_list_that_are_not_there_are_not_replaced(monkeypatch, choice):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    for call in (devices.places, lambda gpus: devices.sharing(1, gpus)):
        with pytest.raises(DeviceError, match=r"sees no GPU.* set it to cpu") as refused:
            call(0)
        assert f"D2LMGPU_DEVICES={choice}," in str(refused.value)


def test_more_devices_than_a_framework_has_numbers_for_are_refused(monkeypatch):
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:100,cpu:29")
    with pytest.raises(DeviceError, match="129 devices: give at most 128"):
        devices.places(0)
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:100,cpu:28")
    assert devices.places(0)[-1] == ("cpu", 127)


@pytest.mark.parametrize(
    "choice, gpus, measured, own",
    [
        ("gpu:4", 2, 2, (1, 2)),
        ("gpu:2", 4, 2, (1, 2)),
        ("gpu:1,cpu:3", 1, 3, (1,)),
        ("cpu:3", 1, 2, ()),
        ("gpu:2,cpu:1", 1, 1, (1,)),
    ],
)
def test_what_is_measured_and_where_nccl_will_do(monkeypatch, choice, gpus, measured, own):
    monkeypatch.setenv("D2LMGPU_DEVICES", choice)
    assert devices.num_measured(gpus) == measured
    count = len(devices.places(gpus))
    sharing = {k: devices.sharing(k, gpus) for k in range(2, count + 1)}
    assert all((kind == "in parallel") == (k <= measured) for k, kind in sharing.items())
    assert tuple(k for k in range(1, count + 1) if devices.own_gpus(k, gpus)) == own


@pytest.mark.parametrize(
    ("place", "i", "result"),
    [
        ((None, None, None), 3, 3),
        ((0, 0, 2), 1, 1),
        ((1, 1, 2), 0, 0),
        ((2, 0, 2), 2, 0),
        ((2, 0, 2), 3, 1),
        ((3, 1, 2), 3, 1),
        ((3, 1, 2), 1, 1),  # a local rank is a local device
        ((3, 1, 2), 4, 4),  # nobody's rank here
        ((3, 1, 2), "x", "x"),
    ],
)
def test_a_rank_on_one_of_several_hosts_has_a_device_there(monkeypatch, place, i, result):
    for name, number in zip(("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"), place, strict=True):
        if number is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, str(number))
    assert devices.on_this_host(i) == result
