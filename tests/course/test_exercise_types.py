"""What an exercise's process gets, and what the explained exercise reports, is of its type."""

import json
import pickle

import pytest
from json_types import fault

from d2lmgpu.course.exercises import check
from d2lmgpu.course.exercises.checks.your_own_script import trained
from d2lmgpu.course.exercises.messages import Job
from d2lmgpu.process.child import Child
from d2lmgpu.watch.explain.messages import RankReport


class Seen(Exception):
    """The job was seen, and nobody has to do it."""


def test_the_job_of_a_check_is_what_its_type_says(monkeypatch):
    jobs = []

    def send(self, job):
        jobs.append(pickle.loads(job))
        raise Seen

    monkeypatch.setattr(Child, "send", send)
    with pytest.raises(Seen):
        check("mean-of-all", max, seeds=(0, 1))
    assert fault(jobs[0], Job) is None and jobs[0]["seeds"] == [0, 1]


def test_devices_of_the_exercise_report_as_those_of_explain():
    def train(device, batches):
        for rows in batches:
            device.mean(device.train(device.load(rows)))
        device.evaluate()

    _, devices = trained(train, 2, [[1, 2], [3, 4]])
    for device in devices:
        report = json.loads(json.dumps(device.report()))
        assert fault(report, RankReport) is None and report["measured"] == 2 and report["calls"]
