"""A training on three hosts goes on after each harm, with the weights that it would have had.

One of each harm; ``make soak`` has five of each, at random moments.
"""

import pytest
import torch
from box_traces import Cluster, standing
from elastic_run import NUM_TRAIN, Training, seen, undisturbed, weights
from harms import (
    cut,
    die_in,
    end_and_start,
    fill_disk,
    heal,
    kill_host,
    kill_meeting_host,
    kill_worker,
    mount,
    unmount,
)

from d2lmgpu.cluster import state

HOSTS = ["n1", "n2", "n3"]
SECONDS = 30  # until training goes on
SAVE_EVERY = 20


@pytest.fixture
def three_hosts(tmp_path, monkeypatch):
    """Three hosts with slow links, and a small disk for checkpoints that they see."""
    folder = tmp_path / "cluster"
    mount(tmp_path / "checkpoints", "6m")
    try:
        with standing(folder, "--hosts", 3, "--rate", "100mbit"):
            monkeypatch.setenv(state.VARIABLE, str(folder))
            yield Cluster(folder)
    finally:
        unmount(tmp_path / "checkpoints")


def each_image_once(training, epochs):
    found = seen(training.lines())
    assert sorted(found) == list(range(epochs))
    assert all(sorted(images) == list(range(NUM_TRAIN)) for images in found.values())


def good(found):
    print(found)
    assert found["seconds"] < SECONDS and found["repeated"] <= SAVE_EVERY


def test_the_same_ranks_end_bit_for_bit(three_hosts, tmp_path):
    options = ["--epochs=60", "--dropout=0.2", f"--save-every={SAVE_EVERY}"]
    with Training(three_hosts, tmp_path, HOSTS, *options) as training:
        training.until(lambda: training.lines("saved"))
        assert len(fill_disk(training)) >= 1
        assert len(training.lines("begins")) == 3, "a full disk has stopped it"
        for harm in (kill_worker, die_in("allreduce"), die_in("checkpoint")):
            good(training.goes_on(lambda harm=harm: harm(training), 3))
        found = training.goes_on(lambda: end_and_start(training), 3)
        good(found)
        assert found["repeated"] == 0, "SIGTERM did not save"
        training.ended()
    assert training.left() == []
    each_image_once(training, 60)
    assert torch.equal(weights(training.checkpoints), undisturbed(tmp_path, 3, *options))


def test_other_ranks_end_where_one_would(three_hosts, tmp_path):
    options = ["--epochs=90", f"--save-every={SAVE_EVERY}"]
    with Training(three_hosts, tmp_path, HOSTS, *options) as training:
        training.until(lambda: training.lines("saved"))
        host = training.host_of(1)
        good(training.goes_on(lambda: cut(training, host), 2))
        good(training.goes_on(lambda: heal(training, host), 3))
        good(training.goes_on(lambda: kill_host(training), 2))
        good(training.goes_on(lambda: kill_meeting_host(training), 1))
        training.ended()
    assert training.left() == []
    each_image_once(training, 90)
    expected = undisturbed(tmp_path, 1, *options)
    assert (weights(training.checkpoints) - expected).norm() < 1e-5 * expected.norm()
