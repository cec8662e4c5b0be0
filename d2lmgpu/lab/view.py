"""The lab as widgets: controls, live curves, the table of runs."""

import json
import os
import time
from functools import wraps
from html import escape

import ipywidgets as widgets
from traitlets import link

from d2lmgpu.costmodel.forecast import training_of
from d2lmgpu.figures.curves import curves_svg
from d2lmgpu.figures.site import BOOK
from d2lmgpu.lab import display
from d2lmgpu.lab.functions import TITLES, check_call, framework_of, need
from d2lmgpu.lab.model import MAX_DEVICES, LabModel

REDRAW = 0.2  # seconds between two pictures
OWN = 0  # in a field for a number: no choice of the reader's


def guarded(draw):
    """The method ``draw``, which must never end a run: what it cannot draw is said in the lab."""

    @wraps(draw)
    def drawn(view, change=None):
        view.trouble.pop(draw.__name__, None)
        try:
            draw(view)
        except Exception as error:
            what = f"This lab cannot show everything: {type(error).__name__}: {error}"
            view.trouble[draw.__name__] = what
        view.troubles.value = escape(" ".join(view.trouble.values()))

    return drawn


class TrainingLab:
    """Runs ``train(num_gpus, batch_size, lr)`` again and again, live, next to the notebook.

    ``train`` is a function or a dict from names to functions; when its cell has been run again, the
    next run is of the edited one. It trains before it returns, and returns a ``Run`` or None, or
    else an object or a dict with ``num_samples``, ``accuracies`` and ``seconds``. It may also take
    ``num_epochs=None``; ``fixed`` holds the values of further parameters. ``settings`` are the
    values at the start: ``num_gpus``, ``batch_size``, ``lr``. A run is ended after ``time_limit``
    seconds. In a built page the recorded runs are shown whose names contain ``records``, as in
    'scratch-pytorch'; that also says which forecast is shown before a run. Raises JobError for
    another signature, for a generator or async function, and for values of another type.
    """

    def __init__(self, train, fixed=None, time_limit=3600, records="", **settings):
        need(isinstance(records, str), "records", records, "a part of names, as 'scratch-pytorch'")
        if not isinstance(train, dict):
            train = {TITLES.get(framework_of(train), "Training"): train}
        training = training_of(records.replace("-", "/", 1)) if records else None
        self.model = LabModel(train, fixed, time_limit, training, **settings)
        self.view, self.records = None, records

    def _repr_mimebundle_(self, **kwargs):
        if os.environ.get(BOOK):
            from d2lmgpu.lab.page import page

            return {"text/html": page(self.records)}
        if self.view is None:
            self.view = LabView(self.model)
            self.model.warm()
        return self.view.box._repr_mimebundle_(**kwargs)


class LabView:
    """The widgets of one LabModel; ``box`` holds them all.

    Every widget that a test or a style sheet may want has a class of its own, ``lab-…``.
    """

    def __init__(self, model):
        self.model, self._drawn, self.trouble = model, 0.0, {}
        self._make_controls()
        for name in ("hint", "note", "message", "progress", "curves", "details", "table",
                     "troubles"):  # fmt: skip
            self._add(name, widgets.HTML())
        row = widgets.Layout(flex_flow="row wrap", align_items="center")
        self.box = widgets.VBox(
            [
                widgets.Box(self.controls, layout=row),
                widgets.Box([self.run, self.stop, self.reset, self.hint], layout=row),
                self.note, self.message, self.progress, self.curves, self.details, self.table,
                self.baseline, self.troubles,
            ]
        )  # fmt: skip
        self.box.add_class("lab")
        model.observe(self._draw_live, "news")
        model.observe(self._draw_state, ["status", "message", "details", "num_devices"])
        model.observe(self._draw_state, ["num_gpus", "batch_size", "train"])
        model.observe(self._draw_table, ["runs", "baseline"])
        self._draw_state()
        self._draw_table()

    def _make_controls(self):
        model = self.model
        # Fields, not sliders: those have no name for a screen reader. Nor dropdowns: JupyterLab
        # takes the arrow keys for itself.
        fields = {
            "train": widgets.Dropdown(options=list(model.trains), description="Training"),
            "num_gpus": widgets.IntText(description="Devices"),
            "batch_size": widgets.IntText(description="Batch size", step=16),
            "lr": widgets.FloatText(description="Learning rate", step=0.01),
            "scale_lr": widgets.Checkbox(description="scale the learning rate with the batch"),
            "num_epochs": widgets.IntText(description=f"Epochs ({OWN}: the chapter's own)"),
            "baseline": widgets.IntText(description=f"Speedup over row ({OWN}: the lab chooses)"),
        }
        own_is_none = (lambda choice: choice or OWN, lambda number: number or None)
        for name, field in fields.items():
            self._add(name, field)
            field.style.description_width = "initial"
            either = own_is_none if name in ("num_epochs", "baseline") else None
            link((model, name), (field, "value"), either)
        shown = ["num_gpus", "batch_size", "lr", "scale_lr"]
        if any("num_epochs" in check_call(fn) for fn in model.trains.values()):
            shown.append("num_epochs")
        if len(model.trains) > 1:
            shown.insert(0, "train")
        self.controls = [fields[name] for name in shown]
        model.observe(lambda change: model.warm(), "train")
        buttons = {"run": model.run, "stop": model.stop, "reset": model.reset}
        for name, press in buttons.items():
            style = "primary" if name == "run" else ""
            button = widgets.Button(description=name.capitalize(), button_style=style)
            button.on_click(lambda _, press=press: press())
            self._add(name, button)

    def _add(self, name, widget):
        widget.add_class("lab-" + name.replace("_", "-"))
        setattr(self, name, widget)

    @guarded
    def _draw_live(self):
        now = time.monotonic()
        if self.model.status != "idle" and now - self._drawn < REDRAW:
            return
        self._drawn, live = now, self.model.live
        self.progress.value = "" if self.model.status == "idle" else display.progress(live)
        if live is None:
            self.curves.value = ""
        elif live.curves:
            curves, x_end = dict(live.curves), live.num_epochs
            self.curves.value = curves_svg(curves, live.xlabel, x_end, modelled=live.modelled)

    @guarded
    def _draw_state(self):
        model = self.model
        self.run.disabled = model.status != "idle"
        self.stop.disabled = model.status != "running"
        self.message.value = f'<div role="status">{escape(model.message)}</div>'
        self.details.value = display.details(model.details)
        note = display.devices_note(model.device_kind, model.num_devices, MAX_DEVICES)
        self.note.value = escape(note)
        hint = display.hint(model.num_gpus, model.num_devices, MAX_DEVICES)
        forecast = display.forecast(model.forecast(), model.training)
        self.hint.value = escape(f"{hint} {forecast}")

    @guarded
    def _draw_table(self):
        rows = self.model.table()
        files = {}
        if rows:
            files["training-lab.csv"] = self.model.to_csv()
            files["training-lab-record.json"] = json.dumps(self.model.to_record(), indent=1)
        self.table.value = display.table(rows, files, self.model.baseline)
        self.baseline.layout.display = None if any(row.measured for row in rows) else "none"
