"""What ``launch`` sends to its workers is what its type says."""

import pickle

import pytest
from json_types import fault

from d2lmgpu.launch import launch
from d2lmgpu.process.child import Child
from d2lmgpu.process.messages import LaunchJob


class Seen(Exception):
    """The job was seen, and nobody has to do it."""


@pytest.mark.parametrize("num_processes", [1, 2])
def test_the_job_of_a_launch_is_what_its_type_says(monkeypatch, num_processes):
    jobs = []

    def send(self, job):
        jobs.append(pickle.loads(job))
        raise Seen

    monkeypatch.setattr(Child, "send", send)
    with pytest.raises(Seen):
        launch(len, [1, 2, 3], num_processes=num_processes)
    assert fault(jobs[0], LaunchJob) is None
