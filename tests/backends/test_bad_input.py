"""Bad input gets an error of ours that names the value and what is allowed."""

import numpy as np
import pytest


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2", None])
def test_number_of_devices(d2l, k):
    with pytest.raises(ValueError, match=r"from 1 up"):
        d2l.devices(k)


def test_more_devices_than_there_are(d2l):
    with pytest.raises(
        ValueError, match=r"9 devices .* there are 8: cpu\(0\).*D2LMGPU_DEVICES=cpu:9"
    ):
        d2l.devices(9)
    with pytest.raises(ValueError, match="D2LMGPU_DEVICES"):
        d2l.try_gpu(8)
    with pytest.raises(ValueError, match="index from 0 up"):
        d2l.try_gpu(-1)


@pytest.mark.parametrize("value", ["tpu", "cpu:0", "cpu:-1", "cpu:two"])
def test_unknown_devices_variable(d2l, monkeypatch, value):
    monkeypatch.setenv("D2LMGPU_DEVICES", value)
    with pytest.raises(ValueError, match=f"D2LMGPU_DEVICES='{value}'.*cpu:N"):
        d2l.try_all_gpus()


def test_gpu_where_there_is_none(d2l, monkeypatch):
    if d2l.num_gpus():
        pytest.skip("this machine has a GPU")
    monkeypatch.setenv("D2LMGPU_DEVICES", "gpu")
    with pytest.raises(ValueError, match="sees no GPU"):
        d2l.devices(1)


@pytest.mark.parametrize(
    "run, message",
    [
        ((2, 1, 0.1), "batch_size=1 is below num_gpus=2"),
        ((1, 0, 0.1), "batch_size=0"),
        ((1, 2.5, 0.1), "batch_size=2.5"),
        ((1, 4, float("nan")), "lr=nan"),
        ((1, 4, float("inf")), "lr=inf"),
        ((1, 4, -0.1), "lr=-0.1"),
        ((1, 4, "0.1"), "lr='0.1'"),
        (("2", 4, 0.1), "num_gpus='2'"),
        ((None, 4, 0.1), "num_gpus=None"),
        ((1, 4, 0.1, 0), "num_epochs=0"),
        ((1, 4, 0.1, -1), "num_epochs=-1"),
    ],
)
def test_runs_that_cannot_be_right(d2l, run, message):
    with pytest.raises(ValueError, match=message):
        d2l.check_run(*run)


def test_a_batch_equal_to_the_number_of_devices_is_fine(d2l):
    d2l.check_run(4, 4, 0.1)


def test_unlike_lengths(d2l, array):
    with pytest.raises(ValueError, match="X has 4 examples, y has 3"):
        d2l.split_batch(array(np.zeros((4, 2))), array(np.zeros(3)), d2l.devices(2))


@pytest.mark.parametrize("weights", [[0.5, 0.4], [1.0], [1.5, -0.5], [float("nan"), 1.0]])
def test_weights_that_do_not_sum(d2l, array, weights):
    with pytest.raises(ValueError, match="weights"):
        d2l.split_batch(array(np.zeros((4, 2))), array(np.zeros(4)), d2l.devices(2), weights)


def test_a_batch_larger_than_the_data(d2l):
    with pytest.raises(ValueError, match="batch_size=513 is above the 512 examples"):
        d2l.load_data_fashion_mnist(513)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5])
def test_a_batch_of_no_size(d2l, batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size}: give a whole number"):
        d2l.load_data_fashion_mnist(batch_size)


@pytest.mark.parametrize(
    "name", ["train_ch6", "load_data_nmt", "Trainer", "load_array", "MTFraEng", "predict_snli"]
)
def test_what_d2l_would_run_on_one_device_is_not_handed_on(d2l, name):
    with pytest.raises(AttributeError, match="not handed on"):
        getattr(d2l, name)


def test_d2l_helpers_are_handed_on(d2l):
    assert d2l.Benchmark and d2l.set_figsize and callable(d2l.plot)
