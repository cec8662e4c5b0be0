"""The lab in a notebook: one widget, which sends numbers to the browser and hears its buttons."""

import os
import threading
import time
from collections.abc import Callable

from traitlets import Dict, List, TraitError, Unicode

from d2lmgpu.costmodel.forecast import training_of
from d2lmgpu.figures.site import BOOK
from d2lmgpu.figures.widget import MessageError, Widget
from d2lmgpu.lab import scripts, speedup_question, why, wire
from d2lmgpu.lab.functions import CONTROLS, framework_of, need
from d2lmgpu.lab.model import LabModel
from d2lmgpu.predictions.store import PredictionError
from d2lmgpu.process.settings import TITLES

REDRAW = 0.1  # seconds between two pictures of a run
SETTINGS = ("train", *CONTROLS, "scale_lr")
ABOUT = ("num_devices", "device_kind")
RESULTS = ("runs", "baseline")
WORDS = "A training lab: run this cell, and it is here."


def hidden(model) -> list[int]:
    """The ids of the runs that the reader has hidden."""
    return sorted(model.hidden)


# What makes each trait, and the traits of the model whose change sends it anew. The runs come
# before what ends the live one, so that a run is never in neither.
SOURCES = {
    "settings": (wire.settings, SETTINGS),
    "about": (wire.about, (*SETTINGS, *ABOUT)),
    "runs": (wire.runs, ("runs", "names")),
    "table": (wire.table, RESULTS),
    "speedups": (wire.speedups, RESULTS),
    "why": (why.why, RESULTS),
    "files": (wire.files, RESULTS),
    "hidden": (hidden, ("hidden",)),
    "prediction": (speedup_question.prediction, (*RESULTS, *SETTINGS, "num_devices")),
    "live": (wire.live, ()),  # see _tell_live
    "state": (
        wire.state,
        ("status", "message", "details", "printed", *ABOUT, "measuring", "can_measure", *SETTINGS),
    ),
}


class TrainingLab:
    """Runs ``train(num_gpus, batch_size, lr)`` again and again, live, next to the notebook.

    In a built page the recorded runs are shown instead.

    Parameters
    ----------
    train : callable or dict
        A function, or a dict from names to functions; when its cell has been run again, the next
        run is of the edited one. It trains before it returns, and returns a ``Run`` or None, or
        else an object or a dict with ``num_samples``, ``accuracies`` and ``seconds``. It may also
        take ``num_epochs=None``.
    fixed : dict, optional
        Values of further parameters of ``train``, by name.
    time_limit : float
        Seconds after which a run is ended.
    records : str
        A part of names, as 'scratch-pytorch': the recorded runs with such a name are those of the
        built page; that also says which forecast is shown before a run.
    **settings : float
        The values at the start: ``num_gpus``, ``batch_size``, ``lr``, ``num_epochs``.

    Raises
    ------
    JobError
        For another signature, for a generator or async function, and for values of another type.
    """

    def __init__(self, train, fixed=None, time_limit=3600, records="", **settings):
        need(isinstance(records, str), "records", records, "a part of names, as 'scratch-pytorch'")
        if not isinstance(train, dict):
            train = {TITLES.get(framework_of(train), "Training"): train}
        training = training_of(records.replace("-", "/", 1)) if records else None
        self.model = LabModel(train, fixed, time_limit, training, **settings)
        self.view, self.records = None, records

    def __repr__(self):
        return WORDS

    def _repr_mimebundle_(self, **kwargs):
        if os.environ.get(BOOK):
            from d2lmgpu.lab.page import page

            return {"text/html": page(self.records)}
        if self.view is None:
            self.view = LabView(self.model)
            self.model.warm()
        return self.view._repr_mimebundle_(**kwargs)


class LabView(Widget):
    """The widget of one LabModel. Its traits are what ``wire`` makes; the browser draws them."""

    words = WORDS
    _esm, _css = scripts.module(), scripts.styles()

    about, settings, state = (Dict().tag(sync=True) for _ in range(3))
    runs, speedups, hidden = (List().tag(sync=True) for _ in range(3))
    table, files = (Dict().tag(sync=True) for _ in range(2))
    live, prediction = (Dict(None, allow_none=True).tag(sync=True) for _ in range(2))
    why, troubles = (Unicode().tag(sync=True) for _ in range(2))
    names = List([*SOURCES, "troubles"]).tag(sync=True)  # of all that is drawn

    def __init__(self, model):
        self.model = model
        self._drawn = 0.0
        self._trouble = {}
        self._telling = threading.RLock()  # runs tell their news in threads of their own
        super().__init__()
        for name, (_, causes) in SOURCES.items():
            if causes:
                model.observe(lambda change, name=name: self._tell(name), causes)
            self._tell(name)
        model.observe(lambda change: model.warm(), "train")
        model.observe(self._tell_live, ["news", "status"])

    def _tell_live(self, change=None):
        now = time.monotonic()
        if self.model.present is None or now - self._drawn >= REDRAW:
            self._drawn = now
            self._tell("live")

    def _tell(self, name):
        """Send what ``wire`` makes; what cannot be shown must never end a run: it is said."""
        with self._telling:
            try:
                setattr(self, name, SOURCES[name][0](self.model))
                self._trouble.pop(name, None)
            except Exception as error:
                what = f"This lab cannot show everything: {type(error).__name__}: {error}"
                self._trouble[name] = what
            self.troubles = " ".join(dict.fromkeys(self._trouble.values()))

    @property
    def commands(self) -> dict[str, Callable]:
        """What the buttons of the browser call, most of them of the model itself."""
        model = self.model
        return {
            "set": self.choose,
            "run": model.run,
            "stop": model.stop,
            "reset": model.reset,
            "measure": model.measure,
            "one_device": model.run_one_device,
            "predict": self.predict,
            "take_back": self.take_back,
            "hide": model.hide,
            "rename": model.rename,
            "baseline": self.refer_to,
        }

    def choose(self, settings: dict) -> None:
        """Choose what runs next, ``{name: value}``."""
        if not settings.keys() <= set(SETTINGS):
            raise MessageError(f"{settings!r:.200} are no settings: {', '.join(SETTINGS)} are.")
        try:
            for name, value in settings.items():
                setattr(self.model, name, value)
        except TraitError as error:
            self.model.message = str(error)

    def predict(self, value: float | int) -> None:
        """Lock the reader's guess of the speedup, before the run."""
        self._predict(speedup_question.lock, value)

    def take_back(self) -> None:
        """Take back a guess that no run has answered yet."""
        self._predict(speedup_question.take_back)

    def _predict(self, change, *value):
        try:
            change(self.model, *value)
        except PredictionError as error:
            self.model.message = str(error)
        self._tell("prediction")

    def refer_to(self, row: int | None) -> None:
        """Choose the row to which speedups refer; None: each its own."""
        self.model.baseline = row
