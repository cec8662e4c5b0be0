"""At a limit of time a thread of ours reports what was seen, while the script still goes on."""

import pytest

from d2lmgpu.watch.run import Limits, run

OF_CHECK = "d2lmgpu.watch.check.observer"
OPTIONS = {"double": False, "short": False, "devices": 1}
TRAINS_ON = """
import time, torch
from torch.utils.data import DataLoader

class Slow:
    def __reduce__(self):  # so that batches come while those before are written down
        time.sleep(0.05)
        return int, ()

net = torch.nn.Linear(2, 1)
trainer = torch.optim.SGD(net.parameters(), lr=0.1)
while True:
    for X, _ in DataLoader(torch.ones(8, 2), 1, collate_fn=lambda rows: (rows[0], Slow())):
        trainer.zero_grad()
        net(X).sum().backward()
        trainer.step()
        time.sleep(0.01)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAINS_ON)
    return path


@pytest.fixture
def reporting(script, tmp_path_factory, monkeypatch):
    """The script's run up to its limits, with an observer that reports so."""

    def watched(report, limits):
        folder = tmp_path_factory.mktemp("observer")
        source = f"def observe(watch):\n    watch.at_end(lambda: {report})\n"
        (folder / "reports.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        return run(script, [], 1, "reports", limits=limits)

    return watched


def test_batches_that_come_meanwhile_do_not_disturb_it(script):
    limits = Limits(steps=10_000, seconds=0.5)
    done = run(script, [], 1, OF_CHECK, OPTIONS, limits)
    assert done.trouble is None, done
    assert done.reports[0]["end"] == "seconds" and "kept-batches-0" in done.files


@pytest.mark.parametrize(
    "limits",
    [Limits(steps=10_000, seconds=0.5), Limits(steps=3)],
    ids=["in a thread of ours", "in the script's"],
)
def test_a_report_that_fails_ends_the_run_and_says_whose_fault_it_is(reporting, limits):
    done = reporting("1 / 0", limits)
    assert done.reports[0]["end"] == "unreported"
    assert "no fault of the script: ZeroDivisionError" in done.trouble


def test_a_report_that_cannot_be_written_ends_the_run(reporting):
    done = reporting("{'key': {(): 1}}", Limits(steps=10_000, seconds=0.5))  # no JSON
    assert done.codes == [1] and "TypeError" in done.explanation
