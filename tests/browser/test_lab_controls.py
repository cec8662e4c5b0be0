"""The lab's controls: what they tell the kernel, what they show of its answers, the focus."""

import lab_page
from lab_page import FRAME, sent


def test_what_the_reader_chooses_is_sent(draw):
    page = draw()
    page.get_by_label("LeNet, MXNet").check()
    page.locator(".lab-devices").get_by_label("8").check()
    page.get_by_label("Number").fill("3")
    page.get_by_label("Number").press("Enter")
    page.locator(".lab-batch-size input[type=range]").press("ArrowRight")
    page.locator(".lab-lr input[type=number]").fill("0.123")
    page.locator(".lab-lr input[type=number]").press("Tab")
    page.get_by_label("scale with batch").check()
    page.get_by_role("spinbutton", name="Epochs").fill("")
    page.get_by_role("spinbutton", name="Epochs").press("Enter")
    page.get_by_label("row 2").check()
    for name in ("Run", "Reset", "Measure this machine (30 s)"):
        page.get_by_role("button", name=name, exact=True).click()
    assert sent(page) == [
        *(
            {"do": "set", "settings": settings}
            for settings in (
                {"train": "LeNet, MXNet"},
                {"num_gpus": 8},
                {"num_gpus": 3},
                {"batch_size": 512},
                {"lr": 0.123},
                {"scale_lr": True},
                {"num_epochs": None},
            )
        ),
        {"do": "baseline", "row": 2},
        {"do": "run"},
        {"do": "reset"},
        {"do": "measure"},
    ]


def test_a_setting_that_is_none_is_said_and_not_sent(draw):
    page = draw()
    page.locator(".lab-batch-size input[type=number]").fill("12.5")
    page.locator(".lab-batch-size input[type=number]").press("Enter")
    assert "a whole number" in page.locator(".lab-batch-size [role=alert]").inner_text()
    assert sent(page) == []


def test_what_the_kernel_finds_wrong_stands_beside_its_field_and_nothing_runs(draw):
    wrong = {
        "batch_size": "give a whole number",
        "lr": "above 0",
        "num_gpus": "1 to 16",
        "num_epochs": "from 1 up",
    }
    page = draw(state=lab_page.STATE | {"wrong": wrong})
    for name, words in wrong.items():
        field = page.locator(f".lab-{name.replace('_', '-')}")
        assert words in field.locator("[role=alert]").inner_text()
        assert field.locator("input[type=number]").get_attribute("aria-invalid") == "true"
    assert page.locator(".lab-run").is_disabled()
    page.evaluate("state => source.set({ state })", lab_page.STATE)
    page.evaluate(FRAME)
    assert page.locator(".lab-run").is_enabled()
    assert page.locator(".lab-settings [role=alert]").all_inner_texts() == [""] * 4


def test_what_a_run_printed_is_in_sight_and_counted(draw):
    page = draw()
    assert not page.locator(".lab-prints").is_visible()
    printed = {"lines": 300, "text": "lr 0.2\nlr 0.4"}
    page.evaluate("state => source.set({ state })", lab_page.STATE | {"printed": printed})
    page.evaluate(FRAME)
    assert page.get_by_text("lr 0.4").is_visible()
    text = page.locator(".lab-prints summary").inner_text()
    assert "300 lines" in text and "last 2" in text


def test_an_older_answer_of_the_kernel_does_not_undo_a_choice(draw):
    page = draw()
    page.locator(".lab-batch-size input[type=range]").press("ArrowRight")
    older = lab_page.SETTINGS | {"lr": 0.7}
    page.evaluate("settings => source.set({ settings, heard: 'another' })", older)
    page.evaluate(FRAME)
    field = page.locator(".lab-batch-size input[type=number]")
    assert field.input_value() == "512"
    page.evaluate("settings => source.set({ settings, heard: source.sent[0].token })", older)
    page.evaluate(FRAME)
    assert field.input_value() == "256"


def test_while_a_run_goes_on_each_device_has_a_lane(draw):
    state = lab_page.STATE | {"status": "running", "message": "Training."}
    page = draw(live=lab_page.LIVE, state=state)
    assert page.locator(".lab-lanes .lab-lane").count() == 2
    assert page.locator(".lab-lanes .lab-lane .lab-what-exchanging").count() == 2
    assert "epoch 2 of 4, 5,500 samples/s (measured), about 12 s left" in said_live(page)
    assert page.locator(".lab-run").is_disabled() and page.locator(".lab-stop").is_enabled()
    page.evaluate("state => source.set({ live: null, state })", lab_page.STATE)
    page.locator(".lab-live").wait_for(state="hidden")


def said_live(page):
    return page.locator(".lab-live .lab-said").inner_text()


def test_the_focus_goes_on_where_a_button_cannot_be_pressed_any_more(draw):
    page = draw()
    page.locator(".lab-run").press("Enter")
    page.evaluate("state => source.set({ state })", lab_page.STATE | {"status": "running"})
    page.locator(".lab-stop:focus").press("Enter")
    page.evaluate("state => source.set({ state })", lab_page.STATE)
    page.locator(".lab-run:focus").wait_for()
    assert [message["do"] for message in sent(page)] == ["run", "stop"]


def test_every_control_has_a_name_and_its_own_group(draw):
    page = draw(live=lab_page.LIVE)
    tree = page.locator(".lab-root").aria_snapshot()
    for role in (
        'group "Devices"',
        'radio "2" [checked]',
        'slider "Batch size"',
        'group "Over"',
        'spinbutton "Learning rate"',
        'button "Run"',
        'progressbar "Progress of the run"',
        'region "Table of runs"',
    ):
        assert role in tree, role


LOCKED = {"value": 1.5, "time": "2026-01-31T09:30:00+01:00"}


def test_a_prediction_is_locked_before_the_run_and_stands_beside_what_happened(draw):
    page = draw(prediction=lab_page.PREDICTION)
    field = page.get_by_label("How many times as fast")
    field.fill("1.5")
    page.evaluate("source.set({ state: source.get('state') })")
    page.evaluate(FRAME)
    assert field.input_value() == "1.5", "what is typed stays while other things change"
    field.press("Enter")
    assert sent(page) == [{"do": "predict", "value": 1.5}]
    show = "entry => source.set({ prediction: { ...source.get('prediction'), ...entry } })"
    page.evaluate(show, {"predicted": LOCKED})
    page.evaluate(FRAME)
    assert page.locator(".lab-prediction input").count() == 0
    assert page.locator(".prediction-picture").count() == 0
    page.get_by_role("button", name="Take it back").click()
    assert sent(page)[-1] == {"do": "take_back"}
    page.evaluate(show, {"happened": {"value": 1.9, "source": "measured", "time": LOCKED["time"]}})
    page.evaluate(FRAME)
    outcome = page.locator(".prediction-picture").get_attribute("aria-label")
    assert "predicted 1.5" in outcome and "measured 1.9" in outcome
    assert page.get_by_role("button", name="Take it back").count() == 0


def test_where_no_speedup_will_be_told_nothing_is_asked(draw):
    page = draw(prediction=None)
    assert not page.locator(".lab-prediction").is_visible()
    late = lab_page.PREDICTION | {"happened": LOCKED | {"source": "measured"}}
    page.evaluate("prediction => source.set({ prediction })", late)
    page.evaluate(FRAME)
    assert not page.get_by_label("How many times as fast").is_visible(), "too late to predict"
