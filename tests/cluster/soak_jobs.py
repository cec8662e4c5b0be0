"""Job files on a Slurm that loses a node: ``pytest -s tests/cluster/soak_jobs.py``, as root.

What is killed is a whole host, with its slurmd. A job with ``--no-kill`` goes on on the one that is
left; one with ``--requeue`` waits until its node is back, and goes on from its checkpoint.
"""

import json
import subprocess
import time

import pytest
from box_traces import SlurmCluster, standing
from elastic_run import seen
from test_slurm_jobs import course  # noqa: F401

from d2lmgpu.cluster import state

NUM_TRAIN, EPOCHS = 610, 60


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A Slurm of two nodes that a test may break."""
    folder = tmp_path / "cluster"
    with standing(folder, "--hosts", 2, "--slurm"):
        monkeypatch.setenv(state.VARIABLE, str(folder))
        monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield SlurmCluster(folder)


def submit(*words):
    return subprocess.check_output(["sbatch", "--parsable", *words], text=True).strip()


def until(thing, slurm, job):
    """Wait for ``thing()``, as long as the job is there."""
    while not (found := thing()):
        assert any(line.startswith(job) for line in slurm.jobs()), "the job has ended"
        time.sleep(0.1)
    return found


def test_without_a_node_an_elastic_job_goes_on(own, course):  # noqa: F811
    def lines(what, world_size):
        files = course.glob("timeline/*")
        told = [json.loads(line) for f in files for line in f.read_text().splitlines()]
        return [one for one in told if one["what"] == what and one["world_size"] == world_size]

    job = submit("clusters/jobs/elastic.sbatch", f"--num-train={NUM_TRAIN}", "--checkpoints=saved",
                 f"--epochs={EPOCHS}", "--timeline=timeline")  # fmt: skip
    until(lambda: lines("saved", 2), own, job)
    start = time.time()
    own.first_process("n2").kill()
    until(lambda: lines("step", 1), own, job)
    again = lines("step", 1)[0]["time"]
    while any(line.startswith(job) for line in own.jobs()):
        time.sleep(0.2)
    said = (course / f"elastic-{job}.out").read_text()
    assert lines("ends", 1), said
    found = seen(lines("step", 2) + lines("step", 1))
    assert sorted(found) == list(range(EPOCHS))
    assert all(sorted(images) == list(range(NUM_TRAIN)) for images in found.values())
    print(f"\nwithout its second node the job trained again after {again - start:.1f} s")
