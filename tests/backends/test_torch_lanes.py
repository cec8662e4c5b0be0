"""What PyTorch tells a lab of its devices: times on a CPU, on GPUs memory and no times."""

import pytest
import torch

from d2lmgpu.process.lanes import LISTENER
from d2lmgpu.torch import lanes


@pytest.fixture(autouse=True)
def nobody_listens_afterwards(monkeypatch):
    monkeypatch.setattr(LISTENER, "steps", None)


def one_step():
    LISTENER.begin(1)
    LISTENER.loaded()
    LISTENER.end()


def test_on_the_cpu_steps_are_timed_and_memory_is_not_known():
    lanes.listen("cpu")
    one_step()
    one_step()
    totals = LISTENER.totals()
    assert (totals["number"], totals["memory"]) == (1, None)


def test_on_gpus_the_most_memory_of_each_and_no_times(monkeypatch):
    most = {0: 7 * 2**20, 1: 5 * 2**20}
    monkeypatch.setattr(lanes, "num_gpus", lambda: len(most))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", most.__getitem__)
    lanes.listen("gpu")
    one_step()
    one_step()
    totals = LISTENER.totals()
    assert (totals["memory"], totals["number"]) == ([7 * 2**20, 5 * 2**20], 0)
    most.update({0: 0, 1: 0})
    assert LISTENER.totals()["memory"] is None, "another process has them"
