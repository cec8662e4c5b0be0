"""LeNet from scratch: k devices compute what one device computes."""

import numpy as np
import pytest
from lenet_start import random_batch, start

KS = [1, 2, 3, 4, 8]
BATCHES = {"even": (24, 24, 24), "ragged": (13, 17, 3), "last below k": (9, 8, 1)}


@pytest.fixture
def theta(d2l, updated):
    """Parameter vectors of the replicas on the first k devices after updates."""
    return lambda k, *args, **options: updated(d2l.devices(k), *args, **options)


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-5), ("float64", 1e-9)])
@pytest.mark.parametrize("sizes", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("k", KS)
def test_k_devices_equal_one(theta, k, sizes, dtype, bound):
    (single,), replicas = theta(1, sizes, dtype), theta(k, sizes, dtype)
    assert single.dtype == dtype and np.isfinite(single).all()
    assert np.linalg.norm(single - np.concatenate([p.ravel() for p in start(dtype)])) > 1e-3
    for replica in replicas:
        assert np.linalg.norm(replica - single) / np.linalg.norm(single) <= bound
        assert (replica == replicas[0]).all()


def test_gradient_of_an_idle_device_is_zero(d2l, array, numpy):
    devices = d2l.devices(3)
    params = [array(p) for p in start("float32")]
    replica = d2l.get_params(params, devices[0])
    d2l.forward_backward(*[array(a) for a in random_batch(4, "float32", 0)], replica)
    assert abs(numpy(replica[0].grad)).max() > 0
    d2l.sgd(replica, 0.1, 4)
    empty = [array(a) for a in random_batch(0, "float32", 0)]
    assert d2l.forward_backward(*empty, replica) == 0
    assert all((numpy(p.grad) == 0).all() for p in replica)


@pytest.mark.parametrize("weights", [[0.8, 0.2], [1.0, 0.0], [0.5, 0.25, 0.25]])
def test_update_with_unequal_shards_equals_one_device(d2l, array, numpy, weights):
    X, y = (array(a) for a in random_batch(11, "float64", 3))
    params = [array(p) for p in start("float64")]
    devices = d2l.devices(len(weights))
    replicas = [d2l.get_params(params, device) for device in devices]
    whole = d2l.get_params(params, devices[0])
    d2l.parallel(d2l.forward_backward, *d2l.split_batch(X, y, devices, weights), replicas)
    d2l.forward_backward(X, y, whole)
    for i, p in enumerate(whole):
        d2l.allreduce([replica[i].grad for replica in replicas])
        np.testing.assert_allclose(numpy(replicas[-1][i].grad), numpy(p.grad), atol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_update_is_the_mean_gradient_of_the_global_batch(d2l, array, numpy, k):
    """The last bias, by hand: its gradient is the mean of softmax minus one-hot labels."""
    X, y = random_batch(10, "float64", 4)
    devices = d2l.devices(k)
    device_params = [d2l.get_params([array(p) for p in start("float64")], d) for d in devices]
    outputs = np.exp(numpy(d2l.lenet(array(X), device_params[0])))
    gradient = (outputs / outputs.sum(1, keepdims=True) - np.eye(10)[y]).mean(0)
    d2l.train_batch(array(X), array(y), device_params, devices, 0.3)
    for params in device_params:
        np.testing.assert_allclose(numpy(params[-1]), -0.3 * gradient, rtol=1e-9)
