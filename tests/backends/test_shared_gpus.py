"""``gpu:N`` and mixed lists, with CPU devices in place of GPUs: the arithmetic is that of one."""

import functools
import threading

import gpu_stand_in
import numpy as np
import pytest
from lenet_start import random_batch, start
from numpy_networks import gradient

from d2lmgpu.costmodel import CostError
from d2lmgpu.costmodel.measure import calibrate
from d2lmgpu.machine import devices as machine
from d2lmgpu.machine.devices import DeviceError

SHARED = [*((f"gpu:{k}", 1) for k in range(1, 9)), ("gpu:5", 2), ("gpu:8", 3)]
MIXED = [("gpu:1,cpu:1", 1), ("cpu:2,gpu:1", 1), ("gpu:3,cpu:2", 2), ("cpu:1,gpu:2,cpu:1", 1)]
BATCHES = {"even": (24, 24), "ragged": (13, 3), "last below k": (8, 1)}
LR = 0.1


@pytest.fixture
def choose(d2l, framework, monkeypatch):
    """Let ``D2LMGPU_DEVICES=choice`` choose where there are ``gpus``; all devices."""

    def choose(choice, gpus):
        gpu_stand_in.put_in(framework, gpus, monkeypatch.setattr)
        monkeypatch.setenv("D2LMGPU_DEVICES", choice)
        return d2l.try_all_gpus()

    return choose


def as_numpy_network(params):
    """LeNet's parameters as `numpy_networks` orders them, in one vector."""
    W1, b1, W2, b2, W3, b3, W4, b4 = (p.astype("float64") for p in params)
    W3 = W3.reshape(50, 4, 4, 128).transpose(1, 2, 0, 3)  # channels last
    kernels = W1.transpose(2, 3, 1, 0), W2.transpose(2, 3, 1, 0)
    parts = kernels[0], b1, kernels[1], b2, W3, b3, W4, b4
    return np.concatenate([part.ravel() for part in parts])


@functools.cache
def by_numpy(sizes, dtype):
    """The same updates in NumPy and float64."""
    vector = as_numpy_network(start(dtype))
    for i, n in enumerate(sizes):
        X, y = random_batch(n, dtype, seed=i)
        vector = vector - LR * gradient("lenet", vector, X.astype("float64"), y)[0] / n
    return vector


def unflatten(vector):
    shapes, at = [p.shape for p in start("float64")], 0
    for shape in shapes:
        yield vector[at : at + int(np.prod(shape))].reshape(shape)
        at += int(np.prod(shape))


def far(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-5), ("float64", 1e-9)])
@pytest.mark.parametrize("sizes", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("choice, gpus", SHARED + MIXED)
def test_an_update_is_that_of_one_device_and_of_numpy(
    d2l, choose, updated, choice, gpus, sizes, dtype, bound
):
    devices, oracle = choose(choice, gpus), by_numpy(sizes, dtype)
    assert len(devices) == sum(int(part.split(":")[1]) for part in choice.split(","))
    (single,), replicas = updated([d2l.cpu()], sizes, dtype), updated(devices, sizes, dtype)
    assert len(replicas) == len(devices)
    for replica in replicas:
        assert replica.dtype == dtype and far(replica, single) <= bound
        assert far(as_numpy_network(list(unflatten(replica))), oracle) <= bound
        assert (replica == replicas[0]).all()


@pytest.mark.parametrize("choice, gpus", [("gpu:4", 1), ("gpu:5", 2), ("gpu:2,cpu:2", 1)])
def test_replicas_on_one_gpu_share_no_memory(d2l, choose, array, numpy, choice, gpus):
    """Neither with each other nor with what they are copies of, which may be there already."""
    devices = choose(choice, gpus)
    params = d2l.get_params([array(p) for p in start("float32")], devices[0])
    replicas = [d2l.get_params(params, device) for device in devices]
    for i, replica in enumerate(replicas):
        d2l.sgd(replica, 0.0, 1)
        replica[0].grad[:] = i + 1
    assert [float(numpy(r[0].grad).max()) for r in (params, *replicas)] == [
        0,
        *range(1, len(devices) + 1),
    ]
    d2l.sgd(replicas[0], 1.0, 1)
    for other in (params, *replicas[1:]):
        assert (numpy(other[0]) == start("float32")[0]).all()


@pytest.mark.parametrize("k", range(1, 9))
def test_allreduce_on_one_gpu_sums_once(d2l, choose, array, numpy, k):
    devices = choose(f"gpu:{k}", 1)
    given = [array(np.full((2, 3), 10.0**i)) for i in range(k)]
    data = [d2l.get_params([a], device)[0].grad for a, device in zip(given, devices)]
    for tensor, value in zip(data, given):
        tensor[:] = value
    d2l.allreduce(data)
    for tensor in data:
        assert (numpy(tensor) == float("1" * k)).all()


def test_an_array_handed_over_twice_is_refused(d2l, choose, array):
    devices = choose("gpu:2", 1)
    params = d2l.get_params([array(p) for p in start("float32")], devices[0])
    X, y = (array(a) for a in random_batch(8, "float32", 0))
    with pytest.raises(ValueError, match="share memory"):
        d2l.train_batch(X, y, [params, params], devices, LR)


def test_a_mixed_list_is_balanced_and_its_update_stays_that_of_one_device(
    d2l, choose, array, numpy
):
    devices = choose("gpu:1,cpu:2", 1)
    X, y = (array(a) for a in random_batch(61, "float64", 3))
    params = [array(p) for p in start("float64")]
    weights = d2l.balance(d2l.forward_backward, X, y, params, devices)
    assert len(weights) == 3 and abs(sum(weights) - 1) < 1e-9 and min(weights) > 0
    replicas = [d2l.get_params(params, device) for device in devices]
    whole = d2l.get_params(params, d2l.cpu())
    d2l.parallel(d2l.forward_backward, *d2l.split_batch(X, y, devices, weights), replicas)
    d2l.forward_backward(X, y, whole)
    for i, p in enumerate(whole):
        d2l.allreduce([replica[i].grad for replica in replicas])
        for replica in replicas:
            np.testing.assert_allclose(numpy(replica[i].grad), numpy(p.grad), atol=1e-10)


@pytest.mark.parametrize("choice, in_threads", [("gpu:3", False), ("gpu:1,cpu:2", True)])
def test_gpus_are_a_loop_and_mixed_lists_have_threads(d2l, choose, choice, in_threads):
    choose(choice, 1)
    names = d2l.parallel(lambda i: threading.current_thread().name, [0, 1, 2])
    assert all(name.startswith("device") == in_threads for name in names)


def test_more_replicas_than_gpus_are_simulated_and_a_run_says_so(d2l, choose, monkeypatch):
    monkeypatch.setattr(machine, "num_cores", lambda: 2)
    choose("gpu:4", 2)
    assert [d2l.sharing(k) for k in (1, 2, 3, 4)] == [
        "one device",
        "in parallel",
        "simulated",
        "simulated",
    ]
    run = d2l.Run(3, 60, 0.1, 600, d2l.sharing(3), [0.5], [2.0])
    assert "3 devices, simulated" in str(run) and "says nothing about speedup" in str(run)
    choose("gpu:1,cpu:3", 1)
    assert [d2l.sharing(k) for k in (2, 3, 4)] == ["in parallel", "in parallel", "simulated"]


def test_the_cost_model_whose_devices_are_equal_refuses_a_mixed_list(choose, framework):
    choose("gpu:1,cpu:1", 1)
    with pytest.raises(CostError, match="D2LMGPU_DEVICES is 'gpu:1,cpu:1'"):
        calibrate(framework)


def test_one_too_many_is_refused_with_the_way_to_share_the_gpu(d2l, choose):
    choose("auto", 1)
    assert len(d2l.devices(1)) == 1
    for call in (lambda: d2l.devices(2), lambda: d2l.try_gpu(1), lambda: d2l.sharing(2)):
        with pytest.raises(DeviceError, match="D2LMGPU_DEVICES=gpu:2"):
            call()
    assert len(choose("gpu:2", 1)) == 2  # the way out leads out
