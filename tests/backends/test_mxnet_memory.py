"""Where an array lies is asked only once the array is computed, or its values could be lost."""

import threading

import numpy as np
import pytest

from d2lmgpu import mxnet as d2l  # first: it sets the threads of MXNet

import mxnet as mx  # isort: skip


class Held(mx.operator.CustomOp):
    """A copy that is made when ``let_go`` is set."""

    let_go = threading.Event()

    def forward(self, is_train, req, in_data, out_data, aux):
        assert self.let_go.wait(60)
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("held")
class HeldProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Held()


@pytest.fixture
def held():
    """Makes arrays whose values are not there before ``Held.let_go`` is set."""

    def make(value, device):
        x = mx.nd.array(np.full(3, value, "float32"))
        return mx.nd.Custom(x, op_type="held").as_np_ndarray().copyto(device)

    Held.let_go.clear()
    yield make
    Held.let_go.set()
    mx.npx.waitall()


def test_arrays_on_one_device_are_waited_for(held):
    data = [held(value, d2l.cpu(1)) for value in (1, 2)]
    threading.Timer(0.5, Held.let_go.set).start()
    d2l.allreduce(data)
    assert Held.let_go.is_set()
    assert all((x.asnumpy() == 3).all() for x in data)


def test_arrays_on_devices_of_their_own_are_not_waited_for(held):
    data = [held(value, d2l.cpu(value)) for value in (1, 2)]
    d2l.allreduce(data)
    assert not Held.let_go.is_set()
    Held.let_go.set()
    assert all((x.asnumpy() == 3).all() for x in data)


def test_no_copy_loses_its_values():
    x = d2l.array(np.ones(180, "float32"))
    for _ in range(10_000):
        data = [x.copyto(d2l.cpu(1)) for _ in range(2)]
        d2l.allreduce(data)
        assert all((x.asnumpy() == 2).all() for x in data)
