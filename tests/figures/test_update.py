"""The strip of one update: a copy before it and four steps; what a section is about stands out."""

import re
from xml.etree import ElementTree

import pytest

from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import COLORS
from d2lmgpu.figures.update import PICTURES, STEPS, update_steps
from d2lmgpu.torch import training


def pictures(strip):
    """The strip's pictures as XML, and the attributes of the group around them."""
    group = ElementTree.fromstring(strip._repr_html_())
    assert group.get("role") == "group" and group.get("aria-label") == strip.alt
    return list(group)


def pale(picture):
    return any(part.get("opacity") for part in picture.iter("g"))


def bold(picture):
    return [text.text for text in picture.iter("text") if text.get("font-weight") == "bold"]


def test_each_picture_speaks_and_names_a_function_of_the_backend():
    for name, picture in zip(PICTURES, pictures(update_steps()), strict=True):
        function, what = PICTURES[name]
        assert picture.get("role") == "img" and picture.get("aria-label").endswith(f": {what}")
        assert [text.text for text in picture.iter("text")][1:] == [function]
        assert callable(getattr(training, function))


def test_the_copy_is_no_step_of_an_update():
    """It happens once, before the first one; what is counted are the steps of each update."""
    copy, *steps = pictures(update_steps())
    assert next(copy.iter("text")).text == "once: copy"
    assert copy.get("aria-label").startswith("Once, before the first update: ")
    titles = [next(step.iter("text")).text for step in steps]
    assert titles == ["1 split", "2 compute", "3 add", "4 update"]
    assert [step.get("aria-label").split(":")[0] for step in steps] == [f"Step {t}" for t in titles]
    assert "copy" not in STEPS and "four steps" in update_steps().alt


@pytest.mark.parametrize("current", [(), ("add",), ("compute", "update"), tuple(PICTURES)])
def test_the_steps_that_are_named_stand_out(current):
    strip = update_steps(*current)
    for name, picture in zip(PICTURES, pictures(strip), strict=True):
        assert pale(picture) == (bool(current) and name not in current)
        assert bool(bold(picture)) != pale(picture)
    assert all(name in strip.alt for name in current)


def test_the_strip_takes_the_page_s_ink_and_the_colours_of_two_devices():
    html = update_steps("split")._repr_html_()
    assert set(re.findall(r"#[0-9a-fA-F]{6}", html)) == {*COLORS[:2]}
    assert "currentColor" in html


def test_seven_examples_are_split_into_four_and_three():
    split = pictures(update_steps())[1]
    squares = [box.get("fill") for box in split.iter("rect") if box.get("width") == "9"]
    batch, shards = squares[:7], squares[7:]
    assert batch == shards == [COLORS[0]] * 4 + [COLORS[1]] * 3


@pytest.mark.parametrize("wrong", ["Copy", "", None, 1])
def test_another_step_is_refused(wrong):
    with pytest.raises(FigureError):
        update_steps(wrong)


def test_a_device_has_three_legs_on_each_side_and_stands_where_it_should():
    group = ElementTree.fromstring(device(10, 20, 8, COLORS[2], 0.5))
    legs, body = group
    assert legs.get("d").count("M") == 12
    box = [float(body.get(name)) for name in ("x", "y", "width", "height")]
    assert box == [6, 16, 8, 8]
    assert (
        group.get("stroke") == body.get("fill") == COLORS[2] and body.get("fill-opacity") == "0.5"
    )
