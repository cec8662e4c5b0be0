"""Batches: every example once, in an order that the seed sets, the last batch kept."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.data import loader
from d2lmgpu.data.loader import DataIter
from d2lmgpu.machine.seed import set_seed
from d2lmgpu.process import events


@pytest.fixture(autouse=True)
def seed_zero(monkeypatch):
    monkeypatch.setenv("D2LMGPU_SEED", "0")


def iterate(n, batch_size, shuffle, convert=lambda a: a):
    X = np.arange(n, dtype=np.float32).reshape(n, 1) * 10
    return DataIter(X, np.arange(n), batch_size, shuffle, convert)


def labels(data_iter):
    return np.concatenate([y for _, y in data_iter]).tolist()


@given(st.integers(1, 50), st.integers(1, 60), st.booleans())
def test_every_example_once_an_epoch_beside_its_label(n, batch_size, shuffle):
    if shuffle:
        batch_size = min(batch_size, n)
    data_iter = iterate(n, batch_size, shuffle)
    for _ in range(2):
        batches = list(data_iter)
        assert len(batches) == len(data_iter)
        sizes = [len(y) for _, y in batches]
        assert sizes[:-1] == [batch_size] * (len(batches) - 1) and 1 <= sizes[-1] <= batch_size
        assert all(np.array_equal(X[:, 0], y * 10) for X, y in batches)
        assert sorted(np.concatenate([y for _, y in batches])) == list(range(n))


def test_a_test_set_keeps_its_order():
    data_iter = iterate(7, 3, shuffle=False)
    assert labels(data_iter) == labels(data_iter) == list(range(7))


def test_the_seed_sets_the_order_and_each_epoch_has_its_own():
    set_seed(1)
    first = iterate(100, 30, shuffle=True)
    epochs = [labels(first) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0] != list(range(100))
    again = iterate(100, 30, shuffle=True)
    set_seed(2)  # after it was made: of no effect on it
    assert [labels(again) for _ in range(3)] == epochs
    assert labels(iterate(100, 30, shuffle=True)) not in epochs


@pytest.mark.parametrize("value", ["-1", "two", "4294967296", ""])
def test_a_seed_of_the_environment_that_is_none(monkeypatch, value):
    monkeypatch.setenv("D2LMGPU_SEED", value)
    with pytest.raises(ValueError, match="D2LMGPU_SEED"):
        iterate(4, 2, shuffle=True)


def test_the_order_does_not_depend_on_the_batch_size():
    assert labels(iterate(50, 7, shuffle=True)) == labels(iterate(50, 50, shuffle=True))


def test_numpys_own_random_numbers_are_left_alone():
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    labels(iterate(10, 5, shuffle=True))
    assert np.random.rand() == expected


def test_batches_are_converted():
    for X, y in iterate(5, 2, shuffle=False, convert=lambda a: a.tolist()):
        assert type(X) is list and type(y) is list


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="X has 3 examples and y has 4"):
        DataIter(np.zeros(3), np.zeros(4), 2, False, None)


def test_a_training_batch_above_the_data_is_refused_and_a_test_batch_is_not():
    with pytest.raises(ValueError, match="batch_size=8 is above the 7 examples"):
        iterate(7, 8, shuffle=True)
    assert labels(iterate(7, 8, shuffle=False)) == list(range(7))


def test_training_tells_the_lab_how_far_it_is(monkeypatch):
    events = []
    monkeypatch.setattr(
        loader, "report", lambda event, every, **fields: events.append((every, fields))
    )
    labels(iterate(5, 2, shuffle=False))
    assert events == []
    labels(iterate(5, 2, shuffle=True))
    steps = loader.LISTENER.totals
    assert events == [
        (every, dict(epoch=1, done=done, of=5, steps=steps))
        for every, done in ((0.1, 2), (0.1, 4), (0.0, 5))  # an epoch's end is always told
    ]


def test_the_loss_is_a_mean_and_is_read_only_where_a_lab_listens(monkeypatch, tmp_path):
    read = []

    class OnDevice:
        def __float__(self):
            read.append(1)
            return 6.0

    def losses():
        for _ in data_iter:
            data_iter.report_loss([OnDevice(), 0.0])

    data_iter = iterate(8, 4, shuffle=True)
    losses()
    assert read == []
    (tmp_path / "events").touch()
    monkeypatch.setenv("D2LMGPU_EVENTS", str(tmp_path / "events"))
    monkeypatch.setattr(events, "_last", {})
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: 5.0))
    losses()
    event_ = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    (event_,) = [event for event in event_ if event["event"] == "loss"]
    assert (event_["x"], event_["loss"]) == (1.5, 1.5) and len(read) == 1, "of two, the first"
