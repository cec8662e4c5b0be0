"""`explain(train, …)` sees MXNet's devices, which are threads of one process."""

from dataclasses import replace

import pytest
from lenet_start import start

from d2lmgpu import mxnet as d2l  # first: it sets the threads of MXNet
from d2lmgpu.launch import launch
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.explain import explain, function

from mxnet import autograd, np  # isort: skip

pytestmark = pytest.mark.needs("cores")  # two devices are compared with one


def train(num_gpus, batch_size):
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    params = [d2l.get_params([np.array(p) for p in start("float32")], d) for d in devices]
    for _ in range(20):
        for X, y in d2l.load_data_fashion_mnist(batch_size)[0]:
            d2l.train_batch(X, y, params, devices, 0.1)


def plain_loop(num_gpus, batch_size):
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    params = [d2l.get_params([np.array(p) for p in start("float32")], d) for d in devices]
    for X, y in d2l.load_data_fashion_mnist(batch_size)[0]:
        for shard, own in zip(d2l.split_batch(X, y, devices)[0], params):
            with autograd.record():
                error = d2l.lenet(shard, own).sum()
            error.backward()


def launched(num_gpus, batch_size):
    launch(train, 1, batch_size, num_processes=num_gpus)


@pytest.fixture(scope="module")
def explanation():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("D2LMGPU_DEVICES", "cpu")
        # as many updates as are wanted, also on a slow machine
        patch.setattr(function, "LIMITS", replace(function.LIMITS, seconds=300.0))
        yield explain(train, num_gpus=2, batch_size=128)


def test_all_devices_and_rows_are_seen(explanation):
    assert explanation.run.in_threads and (explanation.single.k, explanation.run.k) == (1, 2)
    assert (
        explanation.single.rows == explanation.run.rows == 128 and len(explanation.run.steps) > 40
    )
    assert {rank["framework"] for rank in explanation.run.ranks} == {"mxnet"}
    assert explanation.run.ranks[0]["gradient_bytes"] == sum(p.nbytes for p in start("float32"))
    assert explanation.predicted > 0


def test_the_parts_of_a_step_are_told_and_drawn(explanation):
    shares = explanation.run.shares()
    assert shares["computing"] > 0.3 and shares["exchanging"] > 0 and shares["loading"] > 0
    assert sum(shares.values()) == pytest.approx(1)
    assert "<svg" in explanation._repr_mimebundle_()["text/html"]
    drawn = {part for rank in explanation.run.ranks for _, part, *_ in rank["spans"]}
    assert drawn == {"loading", "computing", "exchanging"}


def test_devices_in_a_plain_loop_are_not_seen_and_that_is_told():
    with pytest.raises(WatchError, match=r"devices were not seen.*A plain loop"):
        explain(plain_loop, num_gpus=2, batch_size=64)


def test_processes_are_refused_in_words():
    with pytest.raises(WatchError, match="uses MXNet, whose devices"):
        explain(launched, num_gpus=2, batch_size=8)
