"""What a browser may send to a widget: the messages of its own buttons, and nothing else."""

import json

import pytest

from d2lmgpu.course.breaking import forecast, record, view
from d2lmgpu.figures.diagrams import split_data
from d2lmgpu.figures.explorer import Explorer
from d2lmgpu.figures.update import update_steps
from d2lmgpu.figures.widget import MessageError, Widget
from d2lmgpu.lab import TrainingLab
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.view import LabView
from d2lmgpu.predictions import predictions
from d2lmgpu.predictions import widget as prediction_widget


def train(num_gpus, batch_size, lr):
    pass


@pytest.fixture(params=["training", "breaking", "sheet"])
def widget(request, monkeypatch):
    """Each widget of the project, with nothing started, and all that it shows."""
    monkeypatch.setattr(view, "subprocess", None)
    if request.param == "breaking":
        return view.BreakItLab(3)
    if request.param == "sheet":
        return prediction_widget.Sheet({"part": "table", "entries": []}, None, None)
    return LabView(LabModel({"Training": train}))


def test_these_are_all_widgets():
    """A new one belongs into the tests below."""
    import anywidget

    ours = {
        widget for widget in Widget.__subclasses__() if widget.__module__.startswith("d2lmgpu.")
    }
    assert {widget.__name__ for widget in ours} == {"LabView", "BreakItLab", "Sheet"}
    others = set(anywidget.AnyWidget.__subclasses__()) - {Widget}
    assert not [widget for widget in others if widget.__module__.startswith("d2lmgpu.")]


CALLS = [
    {"do": "set_trait", "name": "_esm", "value": "alert(1)"},
    {"do": "__init__", "num_hosts": 9},
    {"do": "close"},
    {"do": "stop()"},
    {"do": "_take", "content": {}},
    {"do": "set_state"},
    {"do": "do_stop"},
    {"do": "class__"},
    {"do": ""},
]
SHAPES = [None, [], "stop", 3, {}, {"do": None}, {"do": ["stop"]}, {"token": 3}, {"value": 5}]


@pytest.mark.parametrize("content", CALLS + SHAPES)
def test_what_is_no_button_is_refused(widget, content):
    before = state_of(widget)
    with pytest.raises(MessageError, match="is no message"):
        widget._take(content)
    assert state_of(widget) == before


ARGUMENTS = {
    "training": [
        {"do": "run", "then": "stop"},
        {"do": "set"},
        {"do": "set", "settings": [["lr", 1]]},
        {"do": "set", "settings": {"message": "x"}},
        {"do": "set", "settings": {"runs": []}},
        {"do": "set", "settings": {"lr": 1, "_trait_values": {}}},
        {"do": "hide", "id": "1"},
        {"do": "hide", "id": True, "hidden": True},
        {"do": "rename", "id": 1, "name": ["x"]},
        {"do": "baseline", "row": "1"},
        {"do": "predict", "value": "1e3"},
        {"do": "predict", "value": None},
        {"do": "predict", "value": True},
    ],
    "breaking": [
        {"do": "press"},
        {"do": "press", "name": "a\nb"},
        {"do": "press", "name": "worker\n"},
        {"do": "press", "name": ""},
        {"do": "press", "name": None},
        {"do": "press", "name": 3},
        {"do": "press", "name": "unknown"},
        {"do": "start", "num_hosts": 10**9},
    ],
    "sheet": [{"do": "lock"}, {"do": "lock", "value": "5"}, {"do": "lock", "value": 5}],
}


@pytest.mark.parametrize(
    "widget, content",
    [(name, content) for name, contents in ARGUMENTS.items() for content in contents],
    indirect=["widget"],
)
def test_arguments_are_checked(widget, content):
    if isinstance(widget, view.BreakItLab):
        widget.runs = True  # so that a press would reach the process, of which there is none
    before = state_of(widget)
    with pytest.raises(MessageError):
        widget._take(content | {"token": "x"})
    assert widget.heard == "x", "it was heard, and refused"
    assert state_of(widget) == before


def test_a_browser_sets_no_trait(widget):
    before = state_of(widget)
    for name in ("_esm", "_css", "heard", *[name for name in widget.keys if name[0] != "_"]):
        update = {"method": "update", "state": {name: "alert(1)"}, "buffer_paths": []}
        widget._handle_msg({"content": {"data": update}, "buffers": []})
    assert state_of(widget) == before


def test_each_name_of_a_harm_is_one_line_of_the_process():
    written = []

    class Process:
        class stdin:
            write = written.append
            flush = staticmethod(lambda: None)

    lab = view.BreakItLab(3)
    lab.runs, lab.pressed, lab.process = True, 0, Process
    names = list(forecast.HARMS | forecast.MENDS)
    for name in names:
        lab._take({"do": "press", "name": name})
    assert "".join(written).splitlines() == names


def test_saved_without_its_state_it_is_words(widget):
    bundle, _ = widget._repr_mimebundle_()
    words = bundle["text/plain"]
    assert "run this cell" in words
    assert "object at" not in words and "0x" not in words


@pytest.mark.parametrize(
    "shown",
    [
        lambda: TrainingLab(train),
        record.Page,
        update_steps,
        split_data,
        lambda: Explorer(str, {"devices": [1, 2]}),
        predictions,
    ],
)
def test_what_is_shown_has_no_address(shown):
    words = repr(shown())
    assert words.strip("<>") and " at 0x" not in words


def state_of(widget):
    """All that the browser sees, but the answer to its messages."""
    state = {name: getattr(widget, name) for name in widget.keys if name not in ("heard", "layout")}
    return json.dumps(state, default=str, sort_keys=True)
