"""A run while it goes on: progress, speed and curves from its events; the picture of them."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.figures.curves import MOST, curves_svg
from d2lmgpu.lab import display
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
    assert live.progress is None and "value" not in display.progress(live)
    live.take(point((0, 1.0, 2.3), xlim=[1, 4]))
    live.take(batch(2, 1000, 2.0))
    assert live.progress == 0.5 and "epoch 2 of 4" in display.progress(live)


def test_loss_and_accuracy_are_curves_over_epochs():
    live = Live()
    for x in (0.5, 1.0):
        live.take({"event": "loss", "x": x, "loss": 2 - x})
    live.take({"event": "point", "points": [(0, 1, 0.5)], "legend": [], "ylabel": "test acc"})
    assert live.curves == {"train loss": ([0.5, 1.0], [1.5, 1.0]), "test acc": ([1], [0.5])}


def test_simulated_is_said_beside_the_speed():
    live = Live()
    live.take({"event": "started", "sharing": "simulated"})
    live.take(batch(1, 100, 0.0))
    live.take(batch(1, 200, 1.0))
    assert "100 samples/s (simulated)" in display.progress(live)
    live.sharing = "in parallel"
    assert "100 samples/s (measured)" in display.progress(live)


def test_curves_have_their_names_even_without_a_legend():
    live = Live()
    live.take(point((0, 1.0, 2.3), (1, 1.0, 0.5), ylabel="y"))
    live.take({"event": "point", "points": [(0, 1.0, 0.1)], "legend": [], "ylabel": "test acc"})
    live.take({"event": "point", "points": [(1, 1.0, 0.1)], "legend": []})
    assert list(live.curves) == ["loss", "acc", "test acc", "curve 2"]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=400))
def test_any_numbers_give_a_small_picture_that_is_well_formed(ys):
    svg = curves_svg({"<loss>": (list(range(len(ys))), ys)}, "epoch", x_end=10)
    root = ET.fromstring(svg)
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    coordinates = lines[0].attrib["points"].split()
    assert len(coordinates) <= MOST
    for pair in coordinates:
        x, y = map(float, pair.split(","))
        assert 0 <= x <= 300 and 0 <= y <= 170
    assert "loss" in root.attrib["aria-label"]


def test_the_last_point_is_always_drawn():
    svg = curves_svg({"acc": (list(range(1001)), [0.0] * 1000 + [1.0])}, "epoch")
    last = re.search(r'points="[^"]* ([\d.]+),([\d.]+)"', svg)
    assert (float(last[1]), float(last[2])) == (288, 22)
    assert 75 < last[0].count(",") <= MOST
    assert 'aria-label="Curves over epoch: acc 1 at 1,000."' in svg


def test_a_forecast_is_dashed_and_said():
    curves = {"loss": ([1, 2], [0.5, 0.4]), "speed": ([1, 2], [50.0, 60.0])}
    svg = curves_svg(curves, "epoch", modelled={"speed": 80.0})
    loss, speed = svg.split("</svg>")[:2]
    assert "stroke-dasharray" in speed and "dashed: modelled" in speed
    assert "stroke-dasharray" not in loss
    assert "speed 60 at 2, modelled 80." in svg
    heights = {y for _, y in re.findall(r'd="M([\d.]+),([\d.]+)H288"', speed)}
    assert heights == {"22.0"}, "the highest that is drawn: at the top"


def test_what_is_not_finite_is_said():
    assert "not finite from epoch 2" in curves_svg({"loss": ([1, 2], [0.5, float("nan")])}, "epoch")


@pytest.mark.parametrize("kind, measured, words", [
    ("cpu", 2, "2 CPU cores, each of them a device. Runs on 1 to 2 devices are measured; on 3 to 16"
               " they are simulated"),
    ("gpu", 1, "1 GPU, each of them a device. Runs on 1 device is measured; on 2 to 16"),
    ("mixed", 3, "GPUs and CPU cores, each of them a device. Runs on 1 to 3 devices are measured"),
    ("gpu", 16, "Runs on 1 to 16 devices are measured."),
    ("cpu", None, "Looking for devices"),
])  # fmt: skip
def test_the_note_says_what_is_measured_here(kind, measured, words):
    assert words in display.devices_note(kind, measured, 16)
