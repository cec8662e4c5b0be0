"""Runs in the page: the same losses on any number of devices, and all that is told of them."""

import itertools

import numpy as np
import numpy_networks as networks
import pytest
from in_page import USUAL, Kernels, train
from soaking import sample

SIZES = {"lenet": 129_068, "mlp": 101_770, "softmax": 7_850}
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


@pytest.mark.parametrize("network", sample(1, ["mlp", "lenet"]))
def test_other_orders_of_adding_differ_by_rounding(page, network):
    alone = losses(page, network=network, steps=5)
    for algorithm, devices in itertools.product(["one", "ring"], DEVICES[1:]):
        curve = losses(page, network=network, steps=5, devices=devices, algorithm=algorithm)
        assert curve == pytest.approx(alone, rel=1e-5)


def test_a_page_from_a_server_trains_as_one_from_the_disk(blank, folder, address):
    curves = []
    for place in ((folder / "index.html").as_uri(), address + "index.html"):
        blank.goto(place)
        curves.append(losses(blank, devices=2))
    assert curves[0] == curves[1] and len(curves[0]) == 24


def test_the_seed_and_nothing_else_draws_the_run(page):
    assert losses(page, seed=1) == losses(page, seed=1) != losses(page, seed=2)


@pytest.mark.parametrize("algorithm", ["tree", "one", "ring"])
def test_the_bytes_that_were_sent_are_those_of_the_formula(page, algorithm):
    bytes_of_a_sum = 4 * (SIZES["mlp"] + 2)
    for devices in DEVICES:
        rounds = {
            "tree": devices.bit_length() - 1,
            "one": 2 * (devices - 1) / devices,
            "ring": 2 * (devices - 1) / devices,
        }
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
        assert 0 <= step["correct"] <= 1 and 0 <= step["exchangeShare"] < 1
        assert step["samplesPerSecond"] > 0
    epochs = events(run, "epoch")
    assert [e["epoch"] for e in epochs] == [1, 2, 3] and epochs == [
        {"type": "epoch", **epoch} for epoch in run["epochs"]
    ]
    assert all(0 < epoch["exchangeShare"] < 1 for epoch in epochs)
    assert any(step["exchangeShare"] for step in steps)
    assert epochs[-1]["testAccuracy"] > 0.75 and not epochs[-1]["hidden"]
    assert run["events"][0] == start and run["events"][-1]["type"] == "end"
    assert run["events"][-1]["losses"] == run["losses"]


def test_the_devices_share_the_test_images(page):
    accuracies = [train(page, devices=k)["epochs"][0]["testAccuracy"] for k in DEVICES]
    assert len(set(accuracies)) == 1 and accuracies[0] > 0.6


def test_a_run_is_gradient_descent_as_numpy_does_it(page, images):
    """From the same start and over the same batches, of which the last one is smaller."""
    seed, batch, lr = 5, 1024, 0.05
    kernels = Kernels(page, "simd")
    size = kernels.start(2, seed)
    vector = kernels.floats(kernels.place_of_parameters(), size).astype(float)
    curve = losses(page, batchSize=batch, lr=lr, seed=seed, epochs=2)
    for epoch, first in itertools.product(range(2), range(0, 6000, batch)):
        rows = shuffled(6000, seed, epoch)[first : first + batch]
        gradient, loss, _ = networks.gradient("mlp", vector, *(part[rows] for part in images))
        assert curve.pop(0) == pytest.approx(loss / len(rows), rel=1e-6)
        vector -= lr * gradient / len(rows)
    assert curve == []


def shuffled(n, seed, epoch):
    """The order of an epoch: Fisher and Yates' shuffle, with numbers from mulberry32."""
    state = seed

    def draw():
        nonlocal state
        state = x = (state + 0x6D2B79F5) % 2**32
        x = (x ^ x >> 15) * (x | 1) % 2**32
        x ^= (x + (x ^ x >> 7) * (x | 61)) % 2**32
        return x ^ x >> 14

    state = draw() + epoch
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = draw() % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def test_an_epoch_in_a_hidden_tab_is_marked(page):
    marks = page.evaluate(
        """async (settings) => {
            await Training.load();
            const hide = (hidden) => {
                Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
                document.dispatchEvent(new Event("visibilitychange"));
            };
            const run = Training.start(settings, ({type, epoch}) => {
                if (type === "epoch") hide(epoch === 1);
                if (type === "step" && epoch === 2) hide(false);
            });
            return (await run.done).epochs.map(({hidden}) => hidden);
        }""",
        USUAL | {"epochs": 3},
    )
    assert marks == [False, True, False]


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
