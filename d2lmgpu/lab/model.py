"""The lab's state, as traits: what the reader has chosen, what runs, what has run. No widgets."""

import itertools
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from traitlets import Enum, Instance, Int, List, Tuple, Unicode

from d2lmgpu.costmodel.forecast import Forecast, forecast, speedups
from d2lmgpu.lab import export, measuring
from d2lmgpu.lab.choices import Choices
from d2lmgpu.lab.functions import (
    CONTROLS,
    JobError,
    KnownTrain,
    check_call,
    check_decorated,
    check_lab,
    latest,
    modules_of,
)
from d2lmgpu.lab.live import LabRun, Live
from d2lmgpu.lab.runner import BusyError, Runner
from d2lmgpu.lab.version import version
from d2lmgpu.machine.devices import RunError, check_run
from d2lmgpu.machine.hardware import machine
from d2lmgpu.records import compare, steady

MAX_DEVICES = 16
BUSY = "A run is going on: stop it or wait for its end."
RIGHT = {"num_gpus": 1, "batch_size": MAX_DEVICES, "lr": 1.0, "num_epochs": None}
CHOSEN = ("train", *CONTROLS)
DIVERGED = "The training diverged: a smaller learning rate may help."


class LabModel(Choices):
    """One lab. ``run``, ``stop`` and ``reset`` are the buttons; the rest is read or observed.

    ``trains`` maps the name of each choice to a function ``train(num_gpus, batch_size, lr)``;
    ``fixed`` holds further arguments of theirs; ``training`` is what there may be a forecast of,
    ``(network, framework)``, for those that do not know it themselves. ``live`` is the present or
    last run (None before the first), ``news`` changes with everything that it tells. ``present`` is
    the ``LabRun`` that goes on, or None, ``ended`` has one for each of ``runs``. No id of a run is
    used again. ``printed`` is ``(lines, the last of them)`` of what that run has printed so far.

    Buttons are pressed in one thread and runs end in another: whoever changes ``status`` holds the
    lock, so that a stop belongs to the run that it was meant for, or to none.
    """

    status = Enum(["idle", "running", "stopping"], "idle")
    message = Unicode("Ready.")
    details = Unicode(help="traceback of the last run, if it failed")
    printed = Tuple(Int(), Unicode(), default_value=(0, ""))
    news = Int(0)
    num_devices = Int(None, allow_none=True, help="how many devices are not simulated, once known")
    device_kind = Unicode("cpu")
    runs = List()
    measuring = Instance(dict, allow_none=True, help="{'done': 0 to 1, 'message': what}, or None")
    most = MAX_DEVICES

    def __init__(self, trains, fixed=None, time_limit=3600, training=None, **settings):
        fixed = {} if fixed is None else fixed
        check_lab(trains, fixed, time_limit, settings)
        self.trains = dict(trains)
        self.fixed = dict(fixed)
        self._training = training
        self.live = None
        self.present = None
        self.ended = []
        self._reset_at_end = False
        self._changes, self._news = threading.RLock(), itertools.count(1)
        self._ids = itertools.count(1)
        self.runner = Runner(self._on_event, self._on_end, time_limit)
        self.measurer = Runner(self._on_measuring, self._on_measured, measuring.TIME_LIMIT)
        super().__init__(train=next(iter(self.trains)), **settings)
        self._first = {name: getattr(self, name) for name in CHOSEN}

    @property
    def function(self) -> Callable:
        """The function that runs next, as its cell defines it now."""
        return latest(self.trains[self.train])

    @property
    def wrong(self) -> dict[str, str]:
        """What is wrong with the present settings, in words by their names: they cannot run."""
        settings = {name: getattr(self, name) for name in CONTROLS}
        alone = {name: refused(**RIGHT | {name: value}) for name, value in settings.items()}
        if self.num_gpus > MAX_DEVICES:
            alone["num_gpus"] = (
                f"num_gpus={self.num_gpus}: the lab has 1 to {MAX_DEVICES} devices. "
                "Those past what this machine has are simulated."
            )
        wrong = {name: words for name, words in alone.items() if words}
        if not wrong and (words := refused(**settings)):
            wrong["batch_size"] = words
        return wrong

    @property
    def training(self) -> tuple | None:
        """``(network, framework)`` of the function that runs next, see ``forecasts``; or None."""
        return self.training_of(self.function)

    def training_of(self, fn) -> tuple | None:
        """The same of any function of this lab."""
        return fn.training if isinstance(fn, KnownTrain) else self._training

    def forecast(self) -> Forecast | None:
        """What the present settings should give: a ``Forecast``; None where nothing is known."""
        return None if self.wrong else forecast_of(self.training, self.num_gpus, self.batch_size)

    @property
    def can_measure(self) -> bool:
        """Whether ``measure`` can be pressed."""
        return self.training is not None and self.status == "idle"

    def forecasts(self) -> list:
        """``[(num_gpus, modelled speedup over one device)]`` for the present batch."""
        if self.training is None or self.wrong:
            return []
        return speedups(*self.training, self.batch_size, MAX_DEVICES)

    def warm(self) -> None:
        """Start a spare worker, which also learns which devices there are; not during a run."""
        threading.Thread(target=machine, daemon=True).start()  # it asks the driver, once
        if self.status == "idle":
            self.runner.pool.keep_spare(modules_of(self.function), self._on_event)

    def run(self) -> None:
        """Start a run with the present settings; what is wrong with them goes to ``message``."""
        with self._changes:
            if wrong := self.wrong:
                self.message = next(iter(wrong.values()))
            else:
                self._start({name: getattr(self, name) for name in CHOSEN})

    def run_one_device(self, row: int) -> None:
        """Start the run that a row, by its number, lacks to have a speedup.

        The settings stay as they are. Where nothing is lacking, or the code is another by now,
        ``message`` says so.
        """
        with self._changes:
            lacking = {line.number: line.trial for line in self.table() if line.alone}
            if (trial := lacking.get(row)) is None:
                self.message = f"Row {row} lacks no run on one device."
            elif version(latest(self.trains[trial.train])) != trial.version:
                self.message = f"The code of row {row} has been changed since: run that again."
            else:
                self._start({name: getattr(trial, name) for name in CHOSEN} | {"num_gpus": 1})

    def _start(self, chosen):
        if self.status != "idle":
            self.message = BUSY
            return
        try:
            fn = latest(self.trains[chosen["train"]])
            arguments = {name: chosen[name] for name in CONTROLS if chosen[name] is not None}
            arguments |= self.fixed
            check_call(fn, arguments)
            check_decorated(self.trains[chosen["train"]], fn)
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            settings = {**chosen, "version": version(fn), "started": now}
            modelled = forecast_of(self.training_of(fn), chosen["num_gpus"], chosen["batch_size"])
            speed = modelled and modelled.step.samples_per_second
            self.live = Live(chosen["num_epochs"], speed)
            self.present = LabRun(next(self._ids), settings, self.live)
            self.status = "running"
            self.message = "Starting."
            self.details = ""
            self.printed = (0, "")
            self.runner.start(fn, modules_of(fn), **arguments)
        except (ValueError, JobError, OSError, BusyError) as error:
            self.status = "idle"
            self.message = str(error)
            self.present = None

    def measure(self) -> None:
        """Measure this machine, so that there are forecasts: half a minute, which Stop ends."""
        with self._changes:
            if self.status != "idle":
                self.message = BUSY
                return
            if self.training is None:
                self.message = "Nobody knows how to measure this training: it is none of a chapter."
                return
            self.status = "running"
            self.message = "Measuring this machine."
            self.details = ""
            self.printed = (0, "")
            self.measuring = {"done": 0.0, "message": "Starting."}
            job = partial(measuring.measure_here, *self.training)
            self.measurer.start(job, modules_of(self.function), num_gpus=1)

    def stop(self) -> None:
        """Stop the run or the measuring, if there is one."""
        with self._changes:
            if self.status == "running":
                self.status, self.message = "stopping", "Stopping."
                self.runner.stop()
                self.measurer.stop()

    def reset(self) -> None:
        """Forget all runs and go back to the first settings; a run that is going on is stopped."""
        with self._changes:
            self._reset_at_end = self.status != "idle"
            if self._reset_at_end:
                return self.stop()
            self.scale_lr = False
            for name, value in self._first.items():
                setattr(self, name, value)
            self.ended, self.live = [], None
            self.runs = []
            self.show_all()
            self.message = "Ready."
            self.details = ""
            self.printed = (0, "")
        self.news = next(self._news)

    def knows(self, run_id) -> bool:
        return any(run.id == run_id for run in (*self.ended, self.present) if run is not None)

    def table(self) -> list:
        """All runs as ``compare.TableRow``s."""
        return compare.rows(self.runs, self.baseline)

    def to_csv(self) -> str:
        """All runs as CSV text."""
        return compare.to_csv(self.runs, self.baseline)

    def to_record(self) -> dict:
        """The finished runs as a record, see ``d2lmgpu.records.store``."""
        gpus = 0 if self.device_kind == "cpu" else self.num_devices or 0
        return export.record_of(self.runs, gpus)

    def _on_event(self, event):
        live = self.live  # a reset may take it away
        if event["event"] == "ready":
            self.device_kind, self.num_devices = event["kind"], event["devices"]
        elif event["event"] == "printed":
            self.printed = (event["lines"], event["text"])
        elif event["event"] == "outcome" and self.status == "idle":
            self.message = event["message"]  # a spare that could not start
        elif live is not None:
            if event["event"] == "started" and self.status == "running":
                self.message = "Training."
            live.take(event)
        self.news = next(self._news)

    def _on_end(self, outcome):
        with self._changes:
            try:
                self._keep(outcome)
            except Exception as error:  # whatever a train may return, the lab goes on
                self.message = f"{outcome.message} The run cannot be shown: {error}"
                self.details = traceback.format_exc()
            self.status, self.present = "idle", None
            if self._reset_at_end:
                self.reset()
        self.news = next(self._news)

    def _on_measuring(self, event):
        if event["event"] == "measuring":
            self.measuring = {"done": event["done"], "message": event["message"]}
            self.news = next(self._news)

    def _on_measured(self, outcome):
        with self._changes:
            failed = outcome.status == "failed"
            self.details = outcome.traceback if failed else ""
            self.printed = (outcome.lines, outcome.log)
            self.message = measuring.end_in_words(outcome)
            self.measuring, self.status = None, "idle"
            if self._reset_at_end:
                self.reset()
        self.news = next(self._news)

    def _keep(self, outcome):
        result, finished = outcome.result, outcome.status == "finished"
        numbers = compare.numbers(
            result.get("num_samples"), result.get("accuracies", ()), result.get("seconds", ())
        )
        if finished and numbers["samples_per_second"] is None:
            numbers["samples_per_second"] = self.live.median_speed  # train returned no numbers
        settings, sharing, unsteady = self.present.settings, self.live.sharing, ""
        if finished and sharing != "simulated":
            steps = steady.pieces(self.live.pace) or numbers["seconds"]
            unsteady = steady.unsteady(steps, settings["num_gpus"], result.get("others"))
        marks = {"diverged": self.live.diverged(numbers["accuracy"]), "unsteady": unsteady}
        sentences = [outcome.message, DIVERGED if marks["diverged"] else "", result.get("note")]
        message = " ".join(filter(None, sentences))
        end = {"status": outcome.status, "message": message, "sharing": sharing}
        trial = compare.Trial(**settings, **end, **numbers, **marks, id=self.present.id)
        self.ended, self.present = [*self.ended, replace(self.present, trial=trial)], None
        self.runs = [*self.runs, trial]  # last: who observes runs finds all the rest in its place
        self.details, self.printed = outcome.traceback, (outcome.lines, outcome.log)
        self.message = message


def refused(**settings) -> str:
    """Why a run with these settings cannot be right, in words; "" if it can."""
    try:
        check_run(**settings)
    except RunError as error:
        return str(error)
    return ""


def forecast_of(training, num_gpus, batch_size) -> Forecast | None:
    """The Forecast of a training; None where nothing is known of it."""
    return None if training is None else forecast(*training, num_gpus, batch_size)
