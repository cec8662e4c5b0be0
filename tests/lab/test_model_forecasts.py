"""What should come out, before a run and beside it; and how to get a forecast that is not there."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from recording import idle
from trains import trains_a_little

from d2lmgpu.costmodel.forecast import RECORDED_ERRORS
from d2lmgpu.course.chapter_train import ChapterTrain
from d2lmgpu.lab import TrainingLab, wire
from d2lmgpu.lab.live import SPEED
from d2lmgpu.lab.model import LabModel

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


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
        return SimpleNamespace(step=step, best_num_gpus=1, fit_error=0.1)

    monkeypatch.setattr("d2lmgpu.lab.model.forecast", forecast)
    return asked


def test_before_a_run_there_is_a_forecast_and_beside_the_run_too(forecasts):
    lab = LabModel(
        {"Python": trains_a_little}, training=("lenet", "torch"), num_gpus=2, batch_size=64
    )
    assert lab.forecast().step.seconds == 0.002
    assert forecasts == [("lenet", "torch", 2, 64)]
    assert wire.state(lab)["forecast"] == {
        "step_seconds": 0.002,
        "samples_per_second": 32_000,
        "communication_share": 0.25,
        "best_num_gpus": 1,
        "error": list(RECORDED_ERRORS),
        "fit_error": 0.1,
    }
    lab.run()
    idle(lab)
    assert lab.live.modelled == {SPEED: 32_000}
    lab.num_gpus = 65
    assert lab.forecast() is None
    lab.num_gpus, lab.batch_size = 2, 0
    assert lab.forecast() is None


def test_without_measurements_the_lab_says_how_to_get_a_forecast(forecasts, lab):
    assert lab.training is None and lab.forecast() is None and forecasts == []
    assert wire.state(lab)["forecast"] is None and not lab.can_measure
    chapter = ChapterTrain(CHAPTERS / "concise" / "pytorch.ipynb")
    lab = LabModel({"chapter": chapter}, num_gpus=2, batch_size=64)
    assert lab.training == ("resnet18", "torch") and lab.forecast() is None
    assert wire.state(lab)["forecast"] is None and lab.can_measure
    lab = TrainingLab(trains_a_little, records="scratch-mxnet")
    assert lab.model.training == ("lenet", "mxnet")
    assert TrainingLab(trains_a_little).model.training is None
