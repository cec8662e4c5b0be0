"""What a watched run is given, and what it reports, is what their types say."""

import json
import typing
from pathlib import Path

import pytest
from json_types import fault
from tiny_script import TRAINS

from d2lmgpu.process.child import Child
from d2lmgpu.watch.explain.function import DEVICES
from d2lmgpu.watch.explain.messages import DevicesReport, NothingMeasured, RankReport
from d2lmgpu.watch.explain.pair import OBSERVER
from d2lmgpu.watch.messages import Job, Report
from d2lmgpu.watch.run import run

ENDS = {
    "finished": TRAINS,
    "raised": TRAINS + "net(1)",
    "exit": TRAINS + "raise SystemExit(3)",
    "refused": "import deepspeed\n",
}
A_RANK = """
import torch
from torch import distributed as dist

dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
trainer = torch.optim.SGD(net.parameters(), lr=0.1)
for X in torch.utils.data.DataLoader(torch.ones(48, 2), batch_size=4):
    trainer.zero_grad()
    loss = net(X).sum()
    loss.backward()
    dist.all_reduce(loss.detach())
    trainer.step()
"""
TWO_DEVICES = """
import numpy as np
import torch

from d2lmgpu import torch as d2l
from d2lmgpu.data.loader import DataIter

X, y = np.ones((48, 1, 28, 28), "float32"), np.ones(48, int)
shapes = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
devices = [torch.device("cpu")] * 2
params = [d2l.get_params([torch.ones(s) * 0.01 for s in shapes], device) for device in devices]
for batch in DataIter(X, y, 4, shuffle=True, convert=torch.tensor):
    d2l.train_batch(*batch, params, devices, 0.1)
"""


@pytest.mark.parametrize("end", ENDS)
def test_a_report_is_what_its_type_says(tmp_path, monkeypatch, end):
    script, jobs, send = tmp_path / "train.py", [], Child.send
    script.write_text(ENDS[end])
    (tmp_path / "deepspeed.py").write_text("")

    def kept(self, job):
        jobs.append(json.loads(job))
        send(self, job)

    monkeypatch.setattr(Child, "send", kept)
    watched = run(script, ["--lr", "1"], 1, OBSERVER, {}, unprotected=True)
    assert fault(jobs[0], Job) is None
    (report,) = watched.reports
    fields = typing.get_type_hints(Report)
    own = {name: value for name, value in report.items() if name in fields}
    assert fault(own, Report) is None and report["end"] == end
    further = {name: value for name, value in report.items() if name not in fields}
    assert end == "refused" or fault(further, NothingMeasured) is None


def of_explain(tmp_path, script, observer, kind, **options):
    """What the observer has added to the report of a process that runs this script."""
    path = tmp_path / "train.py"
    path.write_text(script)
    (report,) = run(path, [], 1, observer, options, unprotected=True).reports
    others = typing.get_type_hints(Report).keys() - typing.get_type_hints(kind).keys()
    return {name: value for name, value in report.items() if name not in others}


def test_what_explain_reports_of_a_rank_is_what_its_type_says(tmp_path):
    report = of_explain(tmp_path, A_RANK, OBSERVER, RankReport, devices=1)
    assert fault(report, RankReport) is None
    for name in ("measured_steps", "spans", "prints", "calls", "lines", "loaders"):
        assert report[name], "of an empty list the type of an entry is not seen"


def test_what_explain_reports_of_devices_is_what_its_type_says(tmp_path):
    report = of_explain(tmp_path, TWO_DEVICES, DEVICES, DevicesReport)
    assert fault(report, DevicesReport) is None and len(report["devices"]) == 2


def test_the_reports_that_tests_of_causes_make_are_of_this_type(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "explain"))
    from reports import CASES

    for ranks in CASES.values():
        assert fault(json.loads(json.dumps(ranks)), list[RankReport]) is None
