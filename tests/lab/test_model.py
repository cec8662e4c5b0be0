"""The model: what the reader may choose, and what a run leaves in the table. No widgets."""

import threading
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import trains
from recording import SECONDS
from traitlets import validate

from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import TrainingLab, display
from d2lmgpu.lab.functions import JobError, check_call
from d2lmgpu.lab.live import SPEED
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.outcome import Outcome

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def trains_a_little(num_gpus, batch_size, lr, num_epochs=None, accuracy=0.5):
    from types import SimpleNamespace

    from d2lmgpu.process.events import report

    for done in (10, 20):
        report("batch", epoch=1, done=done, of=20)
    report("point", points=[(0, 1.0, accuracy)], legend=["test acc"], xlim=[1, num_epochs or 3])
    return SimpleNamespace(num_samples=20, accuracies=[accuracy], seconds=[0.5] * (num_epochs or 3))


@pytest.fixture
def lab():
    model = LabModel({"Python": trains_a_little}, num_gpus=2, batch_size=64, lr=0.2)
    yield model
    model.stop()
    model.runner.wait(SECONDS)


def idle(model):
    """Wait until the model has heard of the end of its run."""
    assert model.runner.wait(SECONDS)
    assert model.status == "idle"


def test_a_run_becomes_a_row(lab):
    lab.num_epochs = 2
    lab.run()
    assert lab.status == "running"
    idle(lab)
    (row,) = lab.table()
    trial = row.trial
    assert (trial.num_gpus, trial.batch_size, trial.lr, trial.num_epochs) == (2, 64, 0.2, 2)
    assert (row.samples_per_second.median, row.accuracy.median) == (40, 0.5)
    assert lab.message == "Finished." and lab.details == ""
    assert lab.live.curves["test acc"] == ([1.0], [0.5])
    record = lab.to_record()
    assert record["runs"][0]["kind"] == "measured" and record["machine"]["cores"] > 0
    assert record["runs"][0]["seconds"] == (0.5, 0.5)
    assert "trains_a_little" not in lab.to_csv() and "Python," in lab.to_csv()


def test_the_speed_is_seen_even_if_train_returns_nothing():
    lab = LabModel({"Python": returns_nothing})
    lab.run()
    idle(lab)
    assert lab.runs[0].samples_per_second > 0 and lab.runs[0].accuracy is None


def returns_nothing(num_gpus, batch_size, lr):
    trains_a_little(num_gpus, batch_size, lr)


def test_a_run_past_the_devices_is_simulated_and_says_so(lab, monkeypatch):
    monkeypatch.delenv("D2LMGPU_DEVICES", raising=False)
    known = threading.Event()
    lab.observe(lambda change: known.set(), "num_devices")
    lab.warm()
    assert known.wait(SECONDS)
    lab.num_gpus = 16
    lab.run()
    idle(lab)
    (row,) = lab.table()
    assert row.trial.sharing == "simulated" and row.speedup is None


@pytest.mark.parametrize("settings, words", [
    ({"num_gpus": 17}, "num_gpus=17.*1 to 16"),
    ({"num_gpus": 0}, "num_gpus=0"),
    ({"batch_size": 1}, "batch_size=1 is below num_gpus=2"),
    ({"lr": float("nan")}, "lr=nan"),
    ({"lr": 0.0}, "lr=0"),
    ({"num_epochs": 0}, "num_epochs=0"),
])  # fmt: skip
def test_wrong_settings_are_told_and_nothing_runs(lab, settings, words):
    for name, value in settings.items():
        setattr(lab, name, value)
    lab.run()
    assert lab.status == "idle" and lab.runs == []
    assert words.split(".*")[0] in lab.message and words.split(".*")[-1] in lab.message


def test_what_cannot_be_sent_is_told():
    lab = LabModel({"Python": trains_a_little}, fixed={"accuracy": threading.Lock()})
    lab.run()
    idle(lab)
    assert "The argument 'accuracy' is of type lock" in lab.message
    assert lab.runs[0].status == "failed"


def test_fixed_arguments_reach_train_and_a_control_only_shows_what_train_takes():
    lab = LabModel({"Python": trains_a_little}, fixed={"accuracy": 0.25})
    lab.run()
    idle(lab)
    assert lab.runs[0].accuracy == 0.25
    assert "num_epochs" in check_call(lab.function)
    assert "num_epochs" not in check_call(trains.finishes)
    with pytest.raises(JobError, match="fixed="):
        LabModel({"Python": trains.finishes}, fixed={"unknown": 1})


def nested():
    def trains_a_little(num_gpus, batch_size, lr):
        return SimpleNamespace(num_samples=1, accuracies=[0.125], seconds=[1.0])

    return trains_a_little


def test_the_function_that_was_given_runs_and_not_one_of_the_same_name():
    lab = LabModel({"Python": nested()})
    lab.run()
    idle(lab)
    assert lab.runs[0].accuracy == 0.125
    older = types.FunctionType(returns_nothing.__code__, globals(), "trains_a_little")
    older.__qualname__ = older.__name__
    with pytest.raises(JobError, match="Another function is called 'trains_a_little'"):
        LabModel({"before": older, "after": trains_a_little})


@pytest.mark.parametrize("given, words", [
    ({"trains": {}}, "at least one function"),
    ({"batchsize": 512}, "'batchsize': give one of num_gpus, batch_size, lr, num_epochs"),
    ({"fixed": {"num_epochs": 9}}, "'num_epochs': give it as a setting: the lab has a field"),
    ({"time_limit": -1}, "time_limit is -1: give a number of seconds above 0"),
    ({"time_limit": "5"}, "time_limit is '5'"),
    ({"time_limit": float("inf")}, "time_limit is inf"),
    ({"trains": trains_a_little}, "a dict from names"),
    ({"trains": [trains_a_little]}, "a dict from names"),
    ({"trains": {1: trains_a_little}}, "The name of a function is 1: give a string"),
    ({"fixed": ["accuracy"]}, "fixed is .*: give a dict"),
    ({"fixed": {1: 2}}, "A name in fixed is 1: give a string"),
    ({"num_gpus": "2"}, "num_gpus is '2': give a whole number"),
    ({"num_gpus": 2.0}, "num_gpus is 2.0: give a whole number"),
    ({"batch_size": None}, "batch_size is None: give a whole number"),
    ({"lr": "fast"}, "lr is 'fast': give a number"),
    ({"num_epochs": True}, "num_epochs is True: give a whole number"),
])  # fmt: skip
def test_a_lab_that_cannot_be_is_refused(given, words):
    with pytest.raises(JobError, match=words):
        LabModel(**{"trains": {"Python": trains_a_little}} | given)


class EndsInBetween(LabModel):
    """A lab whose run ends just when it is about to be stopped: the very moment is ours."""

    ending = None

    @validate("status")
    def _end(self, proposal):
        if proposal.value == "stopping":
            end = [Outcome("finished", "Finished.")]
            self.ending = threading.Thread(target=self._on_end, args=end)
            self.ending.start()
            self.ending.join(0.1)  # it ends here, or waits until the stop is done
        return proposal.value


@pytest.mark.parametrize("press", ["stop", "reset"])
def test_a_run_that_ends_while_it_is_stopped_has_ended(press):
    lab = EndsInBetween({"Python": trains_a_little})
    lab.runner = SimpleNamespace(start=lambda *args, **kwargs: None, stop=lambda: None)
    lab.run()
    getattr(lab, press)()
    lab.ending.join(SECONDS)
    assert lab.status == "idle" and len(lab.runs) == {"stop": 1, "reset": 0}[press]
    lab.run()
    lab._on_end(Outcome("finished", "Finished."))
    assert lab.status == "idle" and len(lab.runs) == {"stop": 2, "reset": 1}[press]


def test_a_decoration_is_not_lost_in_silence():
    nb = types.ModuleType("__main__")
    exec("import functools\ndef train(num_gpus, batch_size, lr): pass", vars(nb))
    exec("@functools.wraps(train)\ndef timed(*a, of=train, **k): return of(*a, **k)", vars(nb))
    model = LabModel({"timed": nb.timed}, num_gpus=1, batch_size=8, lr=0.1)
    exec("def train(num_gpus, batch_size, lr): return 'edited'", vars(nb))
    model.run()
    assert model.status == "idle" and "decorat" in model.message


def test_a_run_that_cannot_start_leaves_the_lab_idle(monkeypatch):
    def start(*args, **kwargs):
        raise JobError("It cannot be sent.")

    lab = LabModel({"Python": trains_a_little})
    monkeypatch.setattr(lab.runner, "start", start)
    lab.run()
    assert (lab.status, lab.message, lab.runs) == ("idle", "It cannot be sent.", [])


def test_epochs_that_a_train_does_not_take_are_not_dropped_in_silence():
    lab = LabModel({"Python": trains.finishes}, num_epochs=3)
    lab.run()
    assert lab.status == "idle" and "unexpected keyword argument 'num_epochs'" in lab.message


def returns_no_time(num_gpus, batch_size, lr):
    return SimpleNamespace(num_samples=np.int64(20), accuracies=np.ones(1), seconds=[0.0])


def test_numbers_of_another_library_and_no_time_are_a_run_too():
    lab = LabModel({"Python": returns_no_time})
    lab.run()
    idle(lab)
    (run,) = lab.runs
    assert (run.status, run.num_samples, run.accuracy) == ("finished", 20, 1.0)
    assert run.samples_per_second is None


def test_whatever_goes_wrong_with_an_outcome_the_lab_is_idle(lab, monkeypatch):
    monkeypatch.setattr("d2lmgpu.records.compare.numbers", lambda *numbers: 1 / 0)
    lab.run()
    idle(lab)
    assert "Finished. The run cannot be shown: division by zero" in lab.message
    assert "ZeroDivisionError" in lab.details


def test_the_record_names_the_profile_of_the_machine_that_ran(lab, monkeypatch):
    monkeypatch.delenv("D2LMGPU_PROFILE", raising=False)
    assert lab.to_record()["profile"].startswith("quick")
    lab._on_event({"event": "ready", "kind": "gpu", "devices": 2, "cores": 16})
    assert lab.to_record()["profile"].startswith("full")


def test_the_learning_rate_keeps_its_ratio_to_the_batch_if_asked(lab):
    lab.batch_size = 128
    assert lab.lr == 0.2
    lab.scale_lr = True
    lab.batch_size = 512
    assert lab.lr == 0.8
    lab.lr = 0.1
    lab.batch_size = 256
    assert lab.lr == 0.05
    lab.batch_size = 0
    lab.batch_size = 16
    assert lab.lr > 0


def test_stop_and_run_again():
    lab = LabModel({"waits": trains.waits, "raises": trains.raises})
    started = threading.Event()
    lab.observe(lambda change: started.set(), "news")
    lab.run()
    lab.run()
    assert lab.message.startswith("A run is going on")
    assert started.wait(SECONDS)
    lab.stop()
    assert lab.status == "stopping"
    idle(lab)
    lab.train = "raises"
    lab.run()
    idle(lab)
    assert [run.status for run in lab.runs] == ["stopped", "failed"]
    assert "in raises" in lab.details and "the last words" in lab.details
    assert [run.samples_per_second for run in lab.runs] == [None, None]


def test_reset_forgets_everything_even_in_a_run(lab):
    lab.run()
    idle(lab)
    lab.num_gpus, lab.batch_size, lab.lr, lab.scale_lr, lab.baseline = 4, 512, 0.5, True, 1
    lab.reset()
    assert (lab.num_gpus, lab.batch_size, lab.lr, lab.scale_lr) == (2, 64, 0.2, False)
    assert (lab.runs, lab.baseline, lab.live, lab.message) == ([], None, None, "Ready.")
    waiting = LabModel({"waits": trains.waits})
    waiting.run()
    waiting.reset()
    assert waiting.runner.wait(SECONDS)
    assert (waiting.status, waiting.runs, waiting.message) == ("idle", [], "Ready.")


@pytest.fixture
def forecasts(monkeypatch):
    """What is asked of the forecasts; k devices take k milliseconds for a step of LeNet."""
    asked = []

    def forecast(network, framework, num_gpus, batch_size):
        asked.append((network, framework, num_gpus, batch_size))
        if network != "lenet":
            return None
        step = SimpleNamespace(
            seconds=num_gpus / 1000,
            samples_per_second=1000 * batch_size / num_gpus,
            communication_share=0.25,
        )
        return SimpleNamespace(step=step, best_num_gpus=1)

    monkeypatch.setattr("d2lmgpu.lab.model.forecast", forecast)
    return asked


def test_before_a_run_there_is_a_forecast_and_beside_the_run_too(forecasts):
    lab = LabModel(
        {"Python": trains_a_little}, training=("lenet", "torch"), num_gpus=2, batch_size=64
    )
    assert lab.forecast().step.seconds == 0.002
    assert forecasts == [("lenet", "torch", 2, 64)]
    words = display.forecast(lab.forecast(), lab.training)
    assert "(modelled" in words and "2.0 ms a step, 32,000 samples/s, 25.0% of" in words
    assert "shortest on 1 device." in words and "-34% to +51%" in words
    lab.run()
    idle(lab)
    assert lab.live.modelled == {SPEED: 32_000}
    lab.num_gpus = 65
    assert lab.forecast() is None
    lab.num_gpus, lab.batch_size = 2, 0
    assert lab.forecast() is None


def test_without_measurements_the_lab_says_how_to_get_a_forecast(forecasts, lab):
    assert lab.training is None and lab.forecast() is None and forecasts == []
    assert display.forecast(None, None) == ""
    chapter = ChapterTrain(CHAPTERS / "concise" / "pytorch.ipynb")
    lab = LabModel({"chapter": chapter}, num_gpus=2, batch_size=64)
    assert lab.training == ("resnet18", "torch") and lab.forecast() is None
    assert "d2lmgpu forecast resnet18 torch" in display.forecast(None, lab.training)
    lab = TrainingLab(trains_a_little, records="scratch-mxnet")
    assert lab.model.training == ("lenet", "mxnet")
    assert TrainingLab(trains_a_little).model.training is None
