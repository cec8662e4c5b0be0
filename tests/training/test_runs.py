"""Runs in the page: the same losses on any number of devices, and all that is told of them."""

import itertools

import numpy as np
import pytest
from in_page import train

SIZES = {"lenet": 129_068, "mlp": 101_770}
DEVICES = [1, 2, 4, 8]


def losses(page, steps=None, **settings):
    """Of a whole run, or of its first steps."""
    run = train(page, until=steps, **settings)
    assert run["how"] == ("stopped" if steps else "finished"), run["message"]
    return run["losses"][:steps]


def events(run, kind):
    return [event for event in run["events"] if event["type"] == kind]


def test_any_number_of_devices_gives_the_same_losses_with_the_tree(page):
    alone = losses(page)
    assert len(alone) == 24 and max(alone[-5:]) < alone[0] / 2
    for devices in DEVICES[1:]:
        assert losses(page, devices=devices) == alone


def test_the_same_holds_for_lenet(page):
    alone = losses(page, network="lenet", steps=8)
    assert len(alone) == 8 and alone[-1] < alone[0]
    for devices in DEVICES[1:]:
        assert losses(page, network="lenet", steps=8, devices=devices) == alone


@pytest.mark.parametrize("network", SIZES)
def test_other_orders_of_adding_differ_by_rounding(page, network):
    alone = losses(page, network=network, steps=5)
    for algorithm, devices in itertools.product(["one", "ring"], DEVICES[1:]):
        found = losses(page, network=network, steps=5, devices=devices, algorithm=algorithm)
        assert found == pytest.approx(alone, rel=1e-5)


def test_a_page_from_a_server_trains_as_one_from_the_disk(blank, folder, address):
    found = []
    for place in ((folder / "index.html").as_uri(), address + "index.html"):
        blank.goto(place)
        found.append(losses(blank, devices=2))
    assert found[0] == found[1] and len(found[0]) == 24


def test_the_seed_and_nothing_else_draws_the_run(page):
    assert losses(page, seed=1) == losses(page, seed=1) != losses(page, seed=2)


@pytest.mark.parametrize("algorithm", ["tree", "one", "ring"])
def test_the_bytes_that_were_sent_are_those_of_the_formula(page, algorithm):
    bytes_of_a_sum = 4 * (SIZES["mlp"] + 2)
    for devices in DEVICES:
        rounds = {"tree": devices.bit_length() - 1, "one": 2 * (devices - 1) / devices,
                  "ring": 2 * (devices - 1) / devices}  # fmt: skip
        run = train(page, devices=devices, algorithm=algorithm, batchSize=1024)
        (epoch,) = run["epochs"]
        assert epoch["bytes"] == 6 * devices * rounds[algorithm] * bytes_of_a_sum


def test_a_run_learns_and_tells_how_it_goes(page):
    run = train(page, devices=2, epochs=3)
    (start,) = events(run, "start")
    assert start["devices"] == 2 and start["samples"] == 6000 and start["steps"] == 24
    assert start["simd"] and not start["plain"] and start["why"] is None
    assert start["cores"] == page.evaluate("navigator.hardwareConcurrency")
    steps = events(run, "step")
    for before, after in itertools.pairwise(steps):
        assert after["step"] > before["step"] and after["seconds"] > before["seconds"]
        assert after["samples"] > before["samples"] and after["bytes"] >= before["bytes"]
    assert steps[-1]["step"] == len(run["losses"]) == 72 and steps[-1]["samples"] == 18_000
    for step in steps:
        assert step["loss"] == run["losses"][step["step"] - 1]
        assert 0 <= step["correct"] <= 1 and 0 < step["exchangeShare"] < 1
        assert step["samplesPerSecond"] > 0
    epochs = events(run, "epoch")
    assert [e["epoch"] for e in epochs] == [1, 2, 3] and epochs == [
        {"type": "epoch", **epoch} for epoch in run["epochs"]
    ]
    assert epochs[-1]["testAccuracy"] > 0.75 and not epochs[-1]["hidden"]
    assert run["events"][0] == start and run["events"][-1]["type"] == "end"
    assert run["events"][-1]["losses"] == run["losses"]


def test_the_devices_share_the_test_images(page):
    accuracies = [train(page, devices=k)["epochs"][0]["testAccuracy"] for k in DEVICES]
    assert len(set(accuracies)) == 1 and accuracies[0] > 0.6


def test_the_step_goes_by_the_size_of_the_batch_also_of_the_last(page):
    """The last batch of 1,024 has 880 images: with its mean gradient the next loss is lower."""
    run = train(page, batchSize=1024, epochs=2, lr=0.05)
    assert len(run["losses"]) == 12
    assert events(run, "step")[-1]["samples"] == 12_000
    assert run["losses"][6] < run["losses"][4]


def test_a_rate_that_is_too_large_is_seen_in_the_losses(page):
    run = train(page, lr=1e30)
    assert run["how"] == "finished" and not np.isfinite(run["losses"][-1])


def test_without_webassembly_plain_javascript_gives_the_same_losses(blank, folder):
    blank.goto((folder / "index.html").as_uri())
    fast = losses(blank, devices=2)
    blank.add_init_script("delete globalThis.WebAssembly")
    blank.reload()
    run = train(blank, devices=2)
    (start,) = events(run, "start")
    assert start["plain"] and not start["simd"] and "WebAssembly" in start["why"]
    assert run["losses"] == fast
