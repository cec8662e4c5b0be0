"""What an exercise's process gets, and what the explained exercise reports, is of its type."""

import json

from json_types import fault
from sent_jobs import sent_job

from d2lmgpu.course.exercises import check
from d2lmgpu.course.exercises.checks.your_own_script import trained
from d2lmgpu.course.exercises.messages import Job
from d2lmgpu.watch.explain.messages import RankReport


def test_the_job_of_a_check_is_what_its_type_says(monkeypatch):
    job = sent_job(monkeypatch, lambda: check("mean-of-all", max, seeds=(0, 1)))
    assert fault(job, Job) is None and job["seeds"] == [0, 1]


def test_devices_of_the_exercise_report_as_those_of_explain():
    def train(device, batches):
        for rows in batches:
            device.mean(device.train(device.load(rows)))
        device.evaluate()

    _, devices = trained(train, 2, [[1, 2], [3, 4]])
    for device in devices:
        report = json.loads(json.dumps(device.report()))
        assert fault(report, RankReport) is None and report["measured"] == 2 and report["calls"]
