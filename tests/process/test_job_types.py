"""What ``launch`` sends to its workers is what its type says."""

import pytest
from json_types import fault
from sent_jobs import sent_job

from d2lmgpu.launch import launch
from d2lmgpu.process.messages import LaunchJob


@pytest.mark.parametrize("num_processes", [1, 2])
def test_the_job_of_a_launch_is_what_its_type_says(monkeypatch, num_processes):
    job = sent_job(monkeypatch, lambda: launch(len, [1, 2, 3], num_processes=num_processes))
    assert fault(job, LaunchJob) is None
