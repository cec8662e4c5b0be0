"""What a watched run is given, and what it reports, is what their types say."""

import json
import typing

import pytest
from json_types import fault
from tiny_script import TRAINS

from d2lmgpu.process.child import Child
from d2lmgpu.watch.messages import Job, Report
from d2lmgpu.watch.run import run

ENDS = {
    "finished": TRAINS,
    "raised": TRAINS + "net(1)",
    "exit": TRAINS + "raise SystemExit(3)",
    "refused": "import deepspeed\n",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_report_is_what_its_type_says(tmp_path, monkeypatch, end):
    script, jobs, send = tmp_path / "train.py", [], Child.send
    script.write_text(ENDS[end])
    (tmp_path / "deepspeed.py").write_text("")

    def kept(self, job):
        jobs.append(json.loads(job))
        send(self, job)

    monkeypatch.setattr(Child, "send", kept)
    observer = "d2lmgpu.watch.explain.observer"
    watched = run(script, ["--lr", "1"], 1, observer, {}, unprotected=True)
    assert fault(jobs[0], Job) is None
    (report,) = watched.reports
    fields = typing.get_type_hints(Report)
    own = {name: value for name, value in report.items() if name in fields}
    assert fault(own, Report) is None and report["end"] == end
