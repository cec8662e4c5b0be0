"""What ``make gpu-check`` checks, on CPU devices: the same functions, with another list of them."""

import pytest

from d2lmgpu.course import gpu_check

DEVICES, ELEMENTS = 3, 1000


@pytest.fixture
def facts(d2l):
    return lambda: gpu_check.check(d2l, d2l.devices(DEVICES), ELEMENTS)


def test_right_devices_have_no_problem(facts):
    facts = facts()
    lines, problems = gpu_check.report(facts)
    assert problems == []
    assert [update["num_devices"] for update in facts["parity"]] == [2, 3]
    assert all(update["distance"] < 1e-12 for update in facts["single"] + facts["parity"])
    pairs = [(copy["source"], copy["target"]) for copy in facts["copies"]]
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for copy in facts["copies"]:
        assert copy["bytes"] == 4 * ELEMENTS and min(copy["seconds"]) > 0
    assert len(lines) == 3 + 2 + 6 and lines[-1].endswith(" GB/s")


def test_the_update_is_not_the_start(d2l):
    """Equal because nothing moved would be no proof."""
    (after,) = gpu_check.update(d2l, [d2l.cpu()])
    assert gpu_check.squares(after[-1:]) > 1e-6  # the last bias, which starts at zero


def test_gradients_that_are_not_added_up_are_found(room, facts, monkeypatch):
    monkeypatch.setattr(room("training"), "allreduce", lambda data: None)
    _, problems = gpu_check.report(facts())
    assert [problem.split(":")[0] for problem in problems] == ["2 devices", "3 devices"]


def test_a_device_that_computes_something_else_is_found(d2l, facts, monkeypatch):
    get_params, wrong = d2l.get_params, d2l.devices(2)[1]

    def on_a_bad_device(params, device):
        return get_params([p * 1.001 if device == wrong else p for p in params], device)

    monkeypatch.setattr(d2l, "get_params", on_a_bad_device)
    _, problems = gpu_check.report(facts())
    assert [problem.split(":")[0] for problem in problems] == ["device 1", "2 devices", "3 devices"]


def test_data_that_arrives_changed_is_found(d2l, facts, monkeypatch):
    split_batch, cpu = d2l.split_batch, d2l.cpu()

    def lossy(X, y, devices, weights=None):
        X_shards, y_shards = split_batch(X, y, devices, weights)
        if X.ndim == 1 and devices == [cpu]:
            X_shards[0][7] += 1e-3
        return X_shards, y_shards

    monkeypatch.setattr(d2l, "split_batch", lossy)
    _, problems = gpu_check.report(facts())
    assert len(problems) == 6 and all("the data arrived changed" in line for line in problems)
