"""The lab's state, as traits: what the reader has chosen, what runs, what has run. No widgets."""

import threading
import traceback
from datetime import datetime, timezone
from functools import lru_cache

from traitlets import Bool, Enum, Float, HasTraits, Int, List, Unicode, observe

from d2lmgpu import records
from d2lmgpu.devices import check_run
from d2lmgpu.forecasts import forecast
from d2lmgpu.lab import table
from d2lmgpu.lab.job import (
    CONTROLS,
    JobError,
    check_call,
    check_lab,
    latest,
    modules_of,
    version,
)  # fmt: skip
from d2lmgpu.lab.live import Live
from d2lmgpu.lab.runner import Runner, warm
from d2lmgpu.profiles import profile

MAX_DEVICES = 16


class LabModel(HasTraits):
    """One lab. ``run``, ``stop`` and ``reset`` are the buttons; the rest is read or observed.

    ``trains`` maps the name of each choice to a function ``train(num_gpus, batch_size, lr)``;
    ``fixed`` holds further arguments of theirs; ``training`` is what there may be a forecast of,
    ``(network, framework)``, for those that do not know it themselves. ``live`` is the present or
    last run (None before the first), ``beat`` changes with every event of it.
    """

    train = Unicode(help="name of the function that runs next")
    num_gpus = Int(1)
    batch_size = Int(256)
    lr = Float(0.1)
    scale_lr = Bool(False, help="whether lr keeps its ratio to batch_size")
    num_epochs = Int(None, allow_none=True, help="None: train's own default")

    status = Enum(["idle", "running", "stopping"], "idle")
    message = Unicode("Ready.")
    details = Unicode(help="log and traceback of the last run, if it failed")
    beat = Int(0)
    num_devices = Int(None, allow_none=True, help="how many devices are not simulated, once known")
    device_kind = Unicode("cpu")
    runs = List()
    baseline = Int(None, allow_none=True, help="number of the table's row; None: the lab chooses")

    def __init__(self, trains, fixed=None, time_limit=3600, training=None, **settings):
        self.trains, self.fixed, self._training = dict(trains), dict(fixed or {}), training
        check_lab(self.trains, self.fixed, time_limit, settings)
        self.live, self._first, self._reset_at_end = None, {}, False
        self.runner = Runner(self._on_event, self._on_end, time_limit)
        super().__init__(train=next(iter(self.trains)), **settings)
        self._first = {name: getattr(self, name) for name in ("train", *CONTROLS)}

    @property
    def function(self):
        """The function that runs next, as its cell defines it now."""
        return latest(self.trains[self.train])

    def takes(self, name):
        """Whether the function that runs next has a parameter ``name``."""
        return name in check_call(self.function)

    @property
    def training(self):
        """``(network, framework)`` of the function that runs next, see ``forecasts``; or None."""
        return getattr(self.function, "training", self._training)

    def forecast(self):
        """What the present settings should give: a ``Forecast``; None where nothing is known."""
        if self.training is None or not 1 <= self.num_gpus <= min(self.batch_size, MAX_DEVICES):
            return None
        return forecast(*self.training, self.num_gpus, self.batch_size)

    def warm(self):
        """Start a spare worker, which also learns which devices there are; not during a run."""
        threading.Thread(target=_provenance, daemon=True).start()  # it asks git and the driver
        if self.status == "idle":
            warm(modules_of(self.function), self._on_event)

    def run(self):
        """Start a run with the present settings; what is wrong with them goes to ``message``."""
        if self.status != "idle":
            self.message = "A run is going on: stop it or wait for its end."
            return
        try:
            fn, arguments = self.function, self._arguments()
            code, modelled = version(fn), self.forecast()
        except (ValueError, JobError, OSError) as error:
            self.message = str(error)
            return
        speed = modelled and modelled.step.samples_per_second
        self.live = Live(arguments.get("num_epochs"), speed)
        self._run = {
            "train": self.train,
            "version": code,
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            **{name: arguments.get(name) for name in CONTROLS},
        }
        self.status, self.message, self.details = "running", "Starting.", ""
        self.runner.start(fn, modules_of(fn), **arguments)

    def stop(self):
        """Stop the run, if there is one."""
        if self.status == "running":
            self.status, self.message = "stopping", "Stopping."
            self.runner.stop()

    def reset(self):
        """Forget all runs and go back to the first settings; a run that is going on is stopped."""
        if self.status != "idle":
            self._reset_at_end = True
            return self.stop()
        self._reset_at_end = self.scale_lr = False
        for name, value in self._first.items():
            setattr(self, name, value)
        self.runs, self.baseline, self.live = [], None, None
        self.message, self.details = "Ready.", ""
        self.beat += 1

    def table(self):
        """All runs as ``table.Row``s."""
        return table.rows(self.runs, self.baseline)

    def to_csv(self):
        """All runs as CSV text."""
        return table.to_csv(self.runs, self.baseline)

    def to_record(self):
        """The finished runs as a record, see ``d2lmgpu.records``."""
        runs = [run for run in self.runs if run.status == "finished"]
        gpus = (self.num_devices or 0) if self.device_kind == "gpu" else 0
        said = {"profile": str(profile(gpus)), "runs": [_as_recorded(run) for run in runs]}
        return _provenance() | said

    def _arguments(self):
        if not 1 <= self.num_gpus <= MAX_DEVICES:
            raise ValueError(
                f"num_gpus={self.num_gpus}: the lab has 1 to {MAX_DEVICES} devices. "
                "Those past what this machine has are simulated."
            )
        check_run(self.num_gpus, self.batch_size, self.lr)
        arguments = {"num_gpus": self.num_gpus, "batch_size": self.batch_size, "lr": self.lr}
        if self.num_epochs is not None:
            if not self.takes("num_epochs"):
                raise ValueError(
                    f"num_epochs={self.num_epochs}: {self.train!r} has no parameter num_epochs; "
                    "leave it to train."
                )
            if self.num_epochs < 1:
                raise ValueError(f"num_epochs={self.num_epochs}: give a whole number from 1 up.")
            arguments["num_epochs"] = self.num_epochs
        arguments |= self.fixed
        check_call(self.function, arguments)
        return arguments

    @observe("batch_size")
    def _scale(self, change):
        if self.scale_lr and change.old and change.new > 0:
            self.lr = float(f"{self.lr * change.new / change.old:.6g}")

    def _on_event(self, event):
        if event["event"] == "ready":
            kind, count, cores = event["kind"], event["devices"], event["cores"]
            self.device_kind = kind
            self.num_devices = count if kind == "gpu" else min(count, max(cores, 1))
        elif event["event"] == "outcome" and self.status == "idle":
            self.message = event["message"]  # a spare that could not start
        elif self.live is not None:
            if event["event"] == "started" and self.status == "running":
                self.message = "Training."
            self.live.hear(event)
        self.beat += 1

    def _on_end(self, outcome):
        try:
            self._keep(outcome)
        except Exception as error:  # whatever a train may return, the lab goes on
            self.message = f"{outcome.message} The run cannot be shown: {error}"
            self.details = traceback.format_exc()
        self.status = "idle"
        self.beat += 1
        if self._reset_at_end:
            self.reset()

    def _keep(self, outcome):
        said, finished = outcome.result, outcome.status == "finished"
        numbers = table.numbers(
            said.get("num_samples"), said.get("accuracies", ()), said.get("seconds", ())
        )
        if finished and numbers["samples_per_second"] is None:
            numbers["samples_per_second"] = self.live.median_speed  # train returned no numbers
        end = {"status": outcome.status, "message": outcome.message, "overlap": self.live.overlap}
        self.runs = [*self.runs, table.Run(**self._run, **end, **numbers)]
        self.details = "" if finished else "\n".join(filter(None, [outcome.traceback, outcome.log]))
        self.message = outcome.message


@lru_cache
def _provenance():
    return records.provenance("a run of the lab in a notebook")


def _as_recorded(run):
    names = ("train", "num_gpus", "batch_size", "lr", "num_samples", "overlap", "accuracies",
             "seconds", "started", "version")  # fmt: skip
    kind = "simulated" if run.overlap == "simulated" else "measured"
    return {name: getattr(run, name) for name in names} | {"kind": kind}
