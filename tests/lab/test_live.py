"""A run while it goes on: progress, speed and curves from its events."""

import pytest

from d2lmgpu.lab import words
from d2lmgpu.lab.live import Live


def batch(epoch, done, time, of=1000):
    return {"event": "batch", "epoch": epoch, "done": done, "of": of, "time": time}


def point(*points, **settings):
    return {"event": "point", "points": points, "legend": ["loss", "acc"], **settings}


def test_progress_speed_and_time_left():
    live = Live(num_epochs=2)
    for epoch, start in ((1, 0.0), (2, 20.0)):  # ten seconds between the epochs: an evaluation
        for i in range(1, 11):
            live.take(batch(epoch, 100 * i, start + i))
    assert live.progress == 1 and live.seconds_left == 0
    live.take(batch(1, 100, 0.0))
    assert live.speed == live.median_speed == 100


def test_a_count_that_goes_back_is_no_speed():
    live = Live(num_epochs=2)
    for done, time in ((900, 0.0), (100, 1.0)):
        live.take(batch(1, done, time))
    assert (live.speed, live.median_speed) == (None, None)


def test_half_way_the_time_left_is_the_time_taken():
    live = Live(num_epochs=2)
    live.take(batch(1, 0, 5.0))
    assert (live.progress, live.seconds_left, live.speed) == (0, None, None)
    live.take(batch(1, 1000, 12.0))
    assert (live.progress, live.seconds_left) == (0.5, 7.0)


def test_epochs_are_known_from_the_axis_or_not_at_all():
    live = Live()
    live.take(batch(1, 500, 1.0))
    assert live.progress is None
    live.take(point((0, 1.0, 2.3), xlim=[1, 4]))
    live.take(batch(2, 1000, 2.0))
    assert (live.progress, live.epoch, live.num_epochs) == (0.5, 2, 4)


def test_loss_and_accuracy_are_curves_over_epochs():
    live = Live()
    for x in (0.5, 1.0):
        live.take({"event": "loss", "x": x, "loss": 2 - x})
    live.take({"event": "point", "points": [(0, 1, 0.5)], "legend": [], "ylabel": "test acc"})
    assert live.curves == {"train loss": ([0.5, 1.0], [1.5, 1.0]), "test acc": ([1], [0.5])}


def test_curves_have_their_names_even_without_a_legend():
    live = Live()
    live.take(point((0, 1.0, 2.3), (1, 1.0, 0.5), ylabel="y"))
    live.take({"event": "point", "points": [(0, 1.0, 0.1)], "legend": [], "ylabel": "test acc"})
    live.take({"event": "point", "points": [(1, 1.0, 0.1)], "legend": []})
    assert list(live.curves) == ["loss", "acc", "test acc", "curve 2"]


@pytest.mark.parametrize(
    "kind, measured, words_of_note",
    [
        (
            "cpu",
            2,
            "2 CPU cores, each of them a device. Runs on 1 to 2 devices are measured; on 3 to 16"
            " they are simulated",
        ),
        ("gpu", 1, "1 GPU, each of them a device. Runs on 1 device is measured; on 2 to 16"),
        (
            "mixed",
            3,
            "GPUs and CPU cores, each of them a device. Runs on 1 to 3 devices are measured",
        ),
        ("gpu", 16, "Runs on 1 to 16 devices are measured."),
        ("cpu", None, "Looking for devices"),
    ],
)
def test_the_note_says_what_is_measured_here(kind, measured, words_of_note):
    assert words_of_note in words.devices_note(kind, measured, 16)
