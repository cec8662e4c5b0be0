"""Job files on a Slurm that loses a node: ``pytest -s tests/cluster/soak_jobs.py``, as root.

What is killed is a whole host, with its slurmd. The job file with ``--no-kill`` goes on on the node
that is left; the one with ``--requeue`` is put back and goes on from its checkpoint on others.
"""

import json
import re
import time
from pathlib import Path

import pytest
from box_traces import SlurmCluster, standing
from elastic_run import seen
from test_slurm_jobs import course, running, submit  # noqa: F401

from d2lmgpu.process.cluster import state

NUM_TRAIN, EPOCHS = 610, 60


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A Slurm of three nodes that a test may break; a job takes two."""
    folder = tmp_path / "cluster"
    with standing(folder, "--hosts", 3, "--slurm"):
        monkeypatch.setenv(state.VARIABLE, str(folder))
        yield SlurmCluster(folder)


def until(thing, slurm, job):
    """Wait for ``thing()``, as long as the job is there."""
    while not (result := thing()):
        assert job in running(slurm), "the job has ended"
        time.sleep(0.1)
    return result


def test_without_a_node_an_elastic_job_goes_on(own, course):  # noqa: F811
    def lines(what, world_size):
        files = course.glob("timeline/*")
        all_lines = [json.loads(line) for f in files for line in f.read_text().splitlines()]
        return [
            line for line in all_lines if line["what"] == what and line["world_size"] == world_size
        ]

    job = submit(
        own,
        "clusters/jobs/elastic.sbatch",
        f"--num-train={NUM_TRAIN}",
        "--checkpoints=saved",
        f"--epochs={EPOCHS}",
        "--timeline=timeline",
    )
    until(lambda: lines("saved", 2), own, job)
    start = time.time()
    own.first_process("n2").kill()
    until(lambda: lines("step", 1), own, job)
    again = lines("step", 1)[0]["time"]
    while job in running(own):
        time.sleep(0.2)
    text = (course / f"elastic-{job}.out").read_text()
    assert lines("ends", 1), text
    images_of = seen(lines("step", 2) + lines("step", 1))
    assert sorted(images_of) == list(range(EPOCHS))
    assert all(sorted(images) == list(range(NUM_TRAIN)) for images in images_of.values())
    print(f"\nwithout its second node the job trained again after {again - start:.1f} s")


def test_after_the_loss_of_a_node_a_job_is_put_back_and_goes_on_from_its_checkpoint(own, course):  # noqa: F811
    job = submit(
        own,
        "clusters/jobs/torchrun.sbatch",
        "--num-train",
        "242",
        "--num-test",
        "100",
        "--batch-size",
        "120",
        "--epochs",
        EPOCHS,
        "--checkpoints",
        "saved",
    )
    until(lambda: list(Path("saved").glob("step-*")), own, job)
    start = time.time()
    own.first_process("n2").kill()
    until(lambda: "Restarts=1" in own.ask("scontrol", "show", "job", job), own, job)
    back = time.time()
    while job in running(own):
        time.sleep(0.2)
    text = (course / f"torchrun-{job}.out").read_text()
    epochs = [int(number) for number in re.findall(r"^epoch (\d+): loss", text, flags=re.MULTILINE)]
    assert sorted(set(epochs)) == list(range(1, EPOCHS + 1)), text
    assert len(epochs) <= EPOCHS + 1, "one was told, and not saved yet"
    print(f"\nwithout its second node the job was put back after {back - start:.1f} s")
