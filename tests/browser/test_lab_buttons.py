"""Every button that a lab draws does something: its kernel takes a message, or the page changes."""

import lab_page
import pytest
from lab_page import FRAME, sent

from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.view import LabView

LOCKED = {"value": 1.8, "time": "2026-01-01T10:00:00+00:00", "shown": False}
ALONE = lab_page.TABLE | {"rows": [row | {"alone": True} for row in lab_page.TABLE["rows"]]}
STATES = {  # what the kernel says -> so that these buttons are there
    "idle": {},
    "running": {"state": lab_page.STATE | {"status": "running"}, "live": lab_page.LIVE},
    "a question": {"prediction": lab_page.PREDICTION},
    "a prediction": {"prediction": lab_page.PREDICTION | {"predicted": LOCKED}},
    "no run on one device": {"table": ALONE},
}
WATCH = """() => {
    window.changes = 0;
    new MutationObserver((list) => { window.changes += list.length; }).observe(
        document.body, { subtree: true, childList: true, attributes: true, characterData: true });
}"""
BUTTONS = "button, :is(.lab-settings, .lab-baseline-box) label:has(input[type=radio]:not(:checked))"


def name_of(button):
    """What a button is for: its first class, or its words."""
    return button.get_attribute("class") or button.inner_text()


@pytest.fixture
def pressed(draw):
    """{what each button was for: whether it did something}, and what was sent."""
    done, messages = {}, []

    def press_all(**others):
        page = draw(**others)
        for field in page.locator(".lab-prediction input").all():
            field.fill("1.5")
        page.evaluate(WATCH)
        page.on("download", lambda download: page.evaluate("window.changes += 1"))
        for button in page.locator(BUTTONS).all():
            if not button.is_visible() or not button.is_enabled():
                continue
            name, before = name_of(button), len(sent(page))
            page.evaluate("window.changes = 0")
            button.click()
            page.evaluate(FRAME)
            answered = len(sent(page)) > before or page.evaluate("window.changes") > 0
            if not answered and button.get_attribute("data-file"):
                answered = page.wait_for_function("window.changes > 0") is not None
            done[name] = done.get(name, False) or answered
            if page.locator(".lab-name").count():  # a name is being edited
                page.keyboard.type("another")
                page.keyboard.press("Enter")
                page.evaluate(FRAME)
        messages.extend(sent(page))

    for others in STATES.values():
        press_all(**others)
    return done, messages


def test_every_button_does_something_that_its_kernel_takes(pressed):
    done, messages = pressed
    assert [name for name, answered in done.items() if not answered] == []
    view = LabView(LabModel({"LeNet, PyTorch": lambda num_gpus, batch_size, lr: None}))
    for message in messages:
        view._asked(message)
    assert {message["do"] for message in messages} == view.commands.keys()
