"""The lab's two lives: a widget in a notebook, plain HTML in the book."""

import itertools
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import trains
from recording import SECONDS

from d2lmgpu.lab import TrainingLab, scripts, view
from d2lmgpu.lab.functions import JobError
from d2lmgpu.lab.pool import POOL
from d2lmgpu.records import compare

VENDOR = Path(__file__).resolve().parents[2] / "assets" / "vendor"
WIDGET = "application/vnd.jupyter.widget-view+json"


def shown(*args, **settings):
    """A lab as a notebook shows it."""
    lab = TrainingLab(*args, **settings)
    lab._repr_mimebundle_()
    return lab


def press(lab, do, **given):
    """What the browser sends when its reader does something, and the end of the run, if any."""
    lab.view._handle_custom_msg({"do": do, **given}, [])
    assert lab.model.runner.wait(SECONDS)


def choose(lab, **settings):
    press(lab, "set", settings=settings, token=str(settings))


def test_in_a_notebook_it_is_a_widget_and_has_a_spare():
    lab = TrainingLab(trains.finishes, batch_size=32)
    assert POOL.spare is None, "a lab that is not shown costs nothing"
    bundle, metadata = lab._repr_mimebundle_()
    assert POOL.spare is not None
    assert lab._repr_mimebundle_() == (bundle, metadata), "shown twice, it is the same lab"
    assert bundle[WIDGET]["model_id"] == lab.view.model_id
    assert lab.view.settings["batch_size"] == 32


def test_in_the_book_it_is_html_alone_and_starts_nothing(monkeypatch):
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    lab = TrainingLab(trains.finishes, records="no such record")
    (mime,) = lab._repr_mimebundle_()
    assert mime == "text/html"
    assert lab.view is None and POOL.spare is None


def test_the_browser_and_the_model_follow_each_other():
    lab = shown(trains.finishes)
    choose(lab, scale_lr=True, batch_size=512)
    assert (lab.model.batch_size, lab.model.lr, lab.view.settings["lr"]) == (512, 0.2, 0.2)
    assert lab.view.heard == str({"scale_lr": True, "batch_size": 512})
    lab.model.num_epochs = 3
    assert lab.view.settings["num_epochs"] == 3
    choose(lab, num_epochs=None, num_gpus=17)
    assert lab.model.num_epochs is None
    press(lab, "run")
    assert "1 to 16" in lab.view.state["message"]
    assert "1 to 16" in lab.view.state["wrong"]["num_gpus"] and lab.view.state["hint"] == ""
    press(lab, "reset")
    settings = [lab.view.settings[name] for name in ("num_gpus", "batch_size", "lr", "scale_lr")]
    assert settings == [1, 256, 0.1, False]


def test_a_setting_of_a_wrong_type_is_said_and_changes_nothing():
    lab = shown(trains.finishes)
    choose(lab, batch_size=12.5)
    assert lab.model.batch_size == 256
    assert "batch_size" in lab.view.state["message"] and "12.5" in lab.view.state["message"]


def test_a_run_is_sent_with_its_curves_its_row_and_its_files():
    lab = shown(trains.trains_a_little)
    press(lab, "run")
    (run,), (row,) = lab.view.runs, lab.view.table["rows"]
    assert (run["status"], run["row"], row["runs"]) == ("finished", row["row"], [run["id"]])
    assert run["curves"]["test accuracy"][-1][-1] == 0.5
    assert lab.view.live is None and lab.view.state["status"] == "idle"
    assert lab.view.files["training-lab.csv"].startswith("train,version,num_gpus")
    assert json.loads(lab.view.files["training-lab-record.json"])["runs"][0]["batch_size"] == 256
    press(lab, "rename", id=run["id"], name="mine")
    press(lab, "hide", id=run["id"], hidden=True)
    assert lab.view.runs[0]["name"] == "mine" and lab.view.hidden == [run["id"]]
    press(lab, "reset")
    assert lab.view.runs == [] and lab.view.hidden == [] and lab.view.table["rows"] == []


def test_a_run_is_told_at_most_ten_times_a_second_and_is_never_in_neither(monkeypatch):
    lab, looks, times, missing = shown(trains.tells_fast), [], [], []

    def monotonic():
        looks.append(time.monotonic())
        return looks[-1]

    monkeypatch.setattr(view, "time", SimpleNamespace(monotonic=monotonic))

    def hear(change):
        times.append(looks[-1])  # by the view's own clock: the rest of this drawing may take long
        if change.old and not change.new and not lab.view.runs:
            missing.append(change)

    lab.view.observe(hear, "live")
    press(lab, "run")
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert len(times) > 3 and min(pauses[:-1]) >= view.REDRAW  # the last one is its end
    assert missing == []


def test_what_cannot_be_shown_is_said_and_the_buttons_go_on(monkeypatch):
    lab = shown(trains.finishes)
    monkeypatch.setitem(view.SOURCES, "table", (lambda model: 1 / 0, view.RESULTS))
    press(lab, "run")
    assert lab.model.message.startswith("Finished.") and lab.view.state["status"] == "idle"
    assert "cannot show everything: ZeroDivisionError" in lab.view.troubles
    monkeypatch.undo()
    press(lab, "run")
    assert lab.view.troubles == "" and len(lab.view.table["rows"][0]["runs"]) == 2


def test_a_baseline_that_cannot_be_one_is_said():
    lab = shown(trains.returns_a_run)
    press(lab, "run")
    (row,) = lab.view.table["rows"]
    assert (row["cells"]["Speedup"], row["cells"]["Efficiency"]) == ("1.00", "–")
    assert lab.view.table["remarks"] == []
    press(lab, "baseline", row=99)
    assert "Row 99 is no measured run" in lab.view.table["remarks"][0]
    assert lab.view.table["rows"][0]["cells"]["Speedup"] == "–" and lab.view.speedups == []


def test_uplot_is_the_one_of_the_pages_own_scripts():
    for name in (scripts.STYLES[0], scripts.SCRIPTS[0]):
        ours, theirs = (folder / name for folder in (scripts.FOLDER, VENDOR))
        assert ours.read_bytes() == theirs.read_bytes()
    assert "MIT" in (scripts.FOLDER / "uPlot.LICENSE").read_text()


def test_every_script_is_in_the_module_and_in_the_page_once():
    there = {path.name for path in scripts.FOLDER.glob("*.js")}
    assert set(scripts.OF_PAGE) == there
    assert len(scripts.OF_PAGE) == len(set(scripts.OF_PAGE))


def test_another_signature_is_refused_at_once():
    with pytest.raises(JobError, match="cannot be called with num_gpus, batch_size, lr"):
        TrainingLab(lambda batch_size: None)


@pytest.mark.parametrize(
    "given",
    [
        {"train": None},
        {"train": [trains.finishes]},
        {"records": 3},
        {"records": None},
        {"fixed": "accuracy"},
        {"time_limit": None},
        {"num_gpus": [2]},
        {"train": {}},
    ],
)
def test_arguments_of_a_wrong_type_are_refused_at_once(given):
    with pytest.raises(JobError):
        TrainingLab(**{"train": trains.finishes} | given)


@pytest.fixture
def predictions(monkeypatch, tmp_path):
    monkeypatch.setenv("D2LMGPU_PREDICTIONS", str(tmp_path))


def test_a_predicted_speedup_stays_and_meets_what_is_measured(predictions):
    lab = shown(trains.finishes)
    assert lab.view.prediction is None, "one device"
    lab.model.num_devices = 2
    choose(lab, num_gpus=2)
    press(lab, "predict", value=1.5)
    press(lab, "predict", value=1.9)
    assert lab.view.prediction["predicted"]["value"] == 1.5
    assert "locked" in lab.view.state["message"] and lab.view.prediction["happened"] is None
    lab.model.runs = [trial(1, 100.0), trial(2, 180.0)]
    assert lab.view.prediction["happened"]["value"] == 1.8
    choose(lab, batch_size=512)
    assert lab.view.prediction["predicted"] is None
    choose(lab, num_gpus=3)
    assert lab.view.prediction is None, "simulated"
    another = shown(trains.finishes, num_gpus=2)
    another.model.num_devices = 2
    assert another.view.prediction["predicted"]["value"] == 1.5, "another kernel finds it"


@pytest.mark.parametrize("runs", [[(2, 180.0)], [(1, 100.0), (2, 260.0)]])
def test_what_is_no_speedup_over_one_device_never_meets_a_prediction(predictions, runs):
    lab = shown(trains.finishes, num_gpus=2)
    lab.model.num_devices = 2
    press(lab, "predict", value=1.5)
    lab.model.runs = [trial(*run) for run in runs]
    assert lab.view.prediction["happened"] is None


def trial(num_gpus, speed):
    """A finished run of 'Training', as a table takes it."""
    sharing = "one device" if num_gpus == 1 else "in parallel"
    return compare.Trial(
        train="Training",
        version="a",
        started="2026-01-01T00:00:00",
        num_gpus=num_gpus,
        batch_size=256,
        lr=0.1,
        num_epochs=None,
        status="finished",
        message="",
        sharing=sharing,
        **compare.numbers(1000, [0.5], [1000 / speed]),
    )
