"""The lab as widgets: controls, live curves, the table of runs."""

import json
import os
import time
from functools import wraps
from html import escape

import ipywidgets as widgets
from traitlets import link

from d2lmgpu.forecasts import training_of
from d2lmgpu.lab import present
from d2lmgpu.lab.curve import curves_svg
from d2lmgpu.lab.job import TITLES, check_call, framework_of
from d2lmgpu.lab.model import MAX_DEVICES, LabModel

BOOK = "D2LMGPU_BOOK"  # set while the book is built
REDRAW = 0.2  # seconds between two pictures
OWN = 0  # in a field for a number: no choice of the reader's


def guarded(draw):
    """The method ``draw``, which must never end a run: what it cannot draw is said in the lab."""

    @wraps(draw)
    def drawn(view, change=None):
        try:
            draw(view)
            trouble = ""
        except Exception as error:
            trouble = f"This lab cannot show everything: {type(error).__name__}: {error}"
        view.trouble[draw.__name__] = trouble
        view.troubles.value = escape(" ".join(filter(None, view.trouble.values())))

    return drawn


class TrainingLab:
    """Runs ``train(num_gpus, batch_size, lr)`` again and again, live, next to the notebook.

    ``train`` is a function or a dict from names to functions; when its cell has been run again, the
    next run is of the edited one. It may also take ``num_epochs=None``; ``fixed`` holds the values
    of further parameters. ``settings`` are the values at the start: ``num_gpus``, ``batch_size``,
    ``lr``. A run is ended after ``time_limit`` seconds. In a built page the recorded runs are shown
    whose names contain ``records``, as in 'scratch-pytorch'; that also says which forecast is
    shown before a run. Raises JobError for another signature.
    """

    def __init__(self, train, fixed=None, time_limit=3600, records="", **settings):
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
        self._make_outputs()
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
        model.observe(self._draw_live, "beat")
        model.observe(self._draw_state, ["status", "message", "details", "num_devices"])
        model.observe(self._draw_state, ["num_gpus", "batch_size", "train"])
        model.observe(self._draw_table, ["runs", "baseline"])
        self._draw_state()
        self._draw_table()

    def _make_controls(self):
        model = self.model
        # Fields, not sliders: those have no name for a screen reader. Nor dropdowns: JupyterLab
        # takes the arrow keys for itself.
        self.num_gpus = widgets.IntText(description="Devices")
        self.batch_size = widgets.IntText(description="Batch size", step=16)
        self.lr = widgets.FloatText(description="Learning rate", step=0.01)
        self.scale_lr = widgets.Checkbox(description="scale the learning rate with the batch")
        self.num_epochs = widgets.IntText(description=f"Epochs ({OWN}: the chapter's own)")
        self.train = widgets.Dropdown(options=list(model.trains), description="Training")
        self.run = widgets.Button(description="Run", button_style="primary")
        self.stop = widgets.Button(description="Stop")
        self.reset = widgets.Button(description="Reset")
        self.controls = [self.num_gpus, self.batch_size, self.lr, self.scale_lr]
        if any("num_epochs" in check_call(fn) for fn in model.trains.values()):
            self.controls.append(self.num_epochs)
        if len(model.trains) > 1:
            self.controls.insert(0, self.train)
        for name in ("num_gpus", "batch_size", "lr", "scale_lr", "train"):
            link((model, name), (getattr(self, name), "value"))
        number_or_none = (lambda choice: choice or OWN, lambda number: number or None)
        link((model, "num_epochs"), (self.num_epochs, "value"), number_or_none)
        for name in ("num_gpus", "batch_size", "lr", "scale_lr", "num_epochs", "train",
                     "run", "stop", "reset"):  # fmt: skip
            getattr(self, name).add_class("lab-" + name.replace("_", "-"))
            getattr(self, name).style.description_width = "initial"
        model.observe(lambda change: model.warm(), "train")
        self.run.on_click(lambda _: model.run())
        self.stop.on_click(lambda _: model.stop())
        self.reset.on_click(lambda _: model.reset())

    def _make_outputs(self):
        outputs = ("hint", "note", "message", "progress", "curves", "details", "table", "troubles")
        for name in outputs:
            output = widgets.HTML()
            output.add_class(f"lab-{name}")
            setattr(self, name, output)
        self.baseline = widgets.IntText(description=f"Speedup over row ({OWN}: the lab chooses)")
        link(
            (self.model, "baseline"),
            (self.baseline, "value"),
            (lambda choice: choice or OWN, lambda number: number or None),
        )
        self.baseline.style.description_width = "initial"
        self.baseline.add_class("lab-baseline")

    @guarded
    def _draw_live(self):
        now = time.monotonic()
        if self.model.status != "idle" and now - self._drawn < REDRAW:
            return
        self._drawn, live = now, self.model.live
        self.progress.value = "" if self.model.status == "idle" else present.progress(live)
        if live is None:
            self.curves.value = ""
        elif live.curves:
            self.curves.value = curves_svg(
                dict(live.curves), live.xlabel, live.num_epochs, modelled=live.modelled
            )

    @guarded
    def _draw_state(self):
        model = self.model
        self.run.disabled = model.status != "idle"
        self.stop.disabled = model.status != "running"
        self.message.value = f'<div role="status">{escape(model.message)}</div>'
        self.details.value = present.details(model.details)
        self.note.value = escape(
            present.devices_note(model.device_kind, model.num_devices, MAX_DEVICES)
        )
        said = present.hint(model.num_gpus, model.num_devices, MAX_DEVICES)
        forecast = present.forecast(model.forecast(), model.training)
        self.hint.value = escape(f"{said} {forecast}")

    @guarded
    def _draw_table(self):
        rows = self.model.table()
        files = {}
        if rows:
            files["training-lab.csv"] = self.model.to_csv()
            files["training-lab-record.json"] = json.dumps(self.model.to_record(), indent=1)
        self.table.value = present.table(rows, files, self.model.baseline)
        self.baseline.layout.display = None if any(row.measured for row in rows) else "none"
