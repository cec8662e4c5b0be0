"""What a call sends to a process of its own, without a process that does it."""

import pickle

import pytest

from d2lmgpu.process.child import Child


class Seen(Exception):
    """The job was seen, and nobody has to do it."""


def sent_job(monkeypatch, call):
    """The job that ``call()`` sends."""
    jobs = []

    def send(self, job):
        jobs.append(pickle.loads(job))
        raise Seen

    monkeypatch.setattr(Child, "send", send)
    with pytest.raises(Seen):
        call()
    (job,) = jobs
    return job
