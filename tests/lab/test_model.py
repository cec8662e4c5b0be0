"""The model: what the reader may choose, and what a run leaves in the table. No widgets."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import trains
from recording import SECONDS, idle
from trains import trains_a_little
from traitlets import validate

from d2lmgpu.lab.functions import JobError, check_call
from d2lmgpu.lab.model import LabModel
from d2lmgpu.lab.outcome import Outcome


@pytest.mark.needs("cores")
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


def test_fixed_arguments_reach_train_and_a_control_only_shows_what_train_takes():
    lab = LabModel({"Python": trains_a_little}, fixed={"accuracy": 0.25})
    lab.run()
    idle(lab)
    assert lab.runs[0].accuracy == 0.25
    assert "num_epochs" in check_call(lab.function)
    assert "num_epochs" not in check_call(trains.finishes)
    with pytest.raises(JobError, match="fixed="):
        LabModel({"Python": trains.finishes}, fixed={"unknown": 1})


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


def returns_no_time(num_gpus, batch_size, lr):
    return SimpleNamespace(num_samples=np.int64(20), accuracies=np.ones(1), seconds=[0.0])


def test_numbers_of_another_library_and_no_time_are_a_run_too():
    lab = LabModel({"Python": returns_no_time})
    lab.run()
    idle(lab)
    (run,) = lab.runs
    assert (run.status, run.num_samples, run.accuracy) == ("finished", 20, 1.0)
    assert run.samples_per_second is None


def test_the_record_names_the_profile_of_the_machine_that_ran(lab, monkeypatch):
    monkeypatch.delenv("D2LMGPU_PROFILE", raising=False)
    assert lab.to_record()["profile"].startswith("quick")
    lab._on_event({"event": "ready", "kind": "gpu", "devices": 2})
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
    assert "in raises" in lab.details and "the last words" in lab.printed[1]
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
