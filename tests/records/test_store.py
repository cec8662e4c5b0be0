"""Records: written with their provenance, read back, and refused if they are none."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from d2lmgpu.records import store
from d2lmgpu.records.run import Run


def test_curves_are_those_of_the_asked_runs_by_setting():
    settings = [(1, 256, 0.2), (2, 256, 0.2), (2, 512, 0.4), (2, 128, 0.1), (2, 256, 0.2)]
    keys = ("num_gpus", "batch_size", "lr")
    runs = [dict(zip(keys, s)) | {"accuracies": [i, i]} for i, s in enumerate(settings)]
    assert store.curves({"runs": runs}, num_gpus=2, batch_sizes=(256, 512)) == {
        "batch 256, lr 0.2": [[1, 1], [4, 4]],
        "batch 512, lr 0.4": [[2, 2]],
    }


def test_speeds_are_those_of_the_asked_runs_by_their_median_epoch():
    settings = [(1, 256), (1, 512), (2, 256), (1, 256)]
    runs = [
        {"num_gpus": k, "batch_size": b, "num_samples": 100 * (i + 1), "seconds": [9, 2, 1, 3, 2]}
        for i, (k, b) in enumerate(settings)
    ]
    assert store.speeds({"runs": runs}, num_gpus=1, batch_size=256) == [50, 200]
    assert store.speeds({"runs": runs}, num_gpus=1, batch_size=512) == [100]
    assert store.speeds({"runs": runs}, num_gpus=2, batch_size=512) == []


def git(folder, *words):
    author = ["-c", "user.name=A Name", "-c", "user.email=a@b.c"]
    done = subprocess.run(
        ["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository with a copy of the package and a record, both committed."""
    folder = tmp_path / "checkout"
    package = store.FOLDER.parent / "d2lmgpu"
    shutil.copytree(package, folder / "d2lmgpu", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "records").mkdir()
    (folder / "records" / "x.json").write_text("1")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def commit_of(package, working_folder):
    """The commit that the package in a folder says, asked from another one."""
    asked = subprocess.run(
        [sys.executable, "-c", "from d2lmgpu.records import store; print(store.commit())"],
        cwd=working_folder, env=os.environ | {"PYTHONPATH": str(package)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return asked.stdout.strip()


def test_the_commit_is_that_of_the_package_wherever_a_notebook_runs(checkout, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("1")
    git(other, "init", "-q")
    git(other, "add", ".")
    git(other, "commit", "-qm", "of somebody else's")
    first = git(checkout, "rev-parse", "HEAD")
    chapter = checkout / "chapters"
    chapter.mkdir()
    assert commit_of(checkout, other) == commit_of(checkout, chapter) == first
    (checkout / "records" / "x.json").write_text("2")
    assert commit_of(checkout, chapter) == first, "records may change"
    (checkout / "d2lmgpu" / "__init__.py").write_text("# edited")
    assert commit_of(checkout, chapter) == commit_of(checkout, other) == first + "+"


def test_a_package_that_is_in_no_repository_has_no_commit(checkout, tmp_path):
    installed = tmp_path / "project" / ".venv" / "lib"
    installed.mkdir(parents=True)
    (checkout / "d2lmgpu").rename(installed / "d2lmgpu")
    assert commit_of(installed, tmp_path) == "none"
    project = tmp_path / "project"
    (project / ".gitignore").write_text(".venv")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    assert commit_of(installed, project) == "none", "it lies in a repository that is not its own"


def test_machines_are_named_by_gpus_or_cores():
    assert store.name({"gpus": [], "cores": 2}) == "cpu-2-cores"
    gpus = ["GPU 0: NVIDIA H200", "GPU 1: NVIDIA H200"]
    assert store.name({"gpus": gpus, "cores": 16}) == "2xnvidia-h200"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 3}', '{"schema": 1}'])
def test_what_is_no_record_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(store.RecordError, match=r"x\.json"):
        store.read(path)


def test_a_run_reports_the_median_of_its_last_epochs():
    run = Run(2, 256, 0.2, 6000, "in parallel", [0.1, 0.7, 0.2, 0.8], [9.0, 1.0, 3.0])
    assert run.accuracy == 0.7
    assert run.samples_per_second == 2000
    assert str(run) == (
        "2 devices, in parallel, batch 256, lr 0.2: test accuracy 0.700 after 4 epochs, "
        "2,000 samples/s"
    )


def test_a_simulated_run_claims_no_speed():
    assert "says nothing about speedup" in str(Run(4, 64, 0.1, 512, "simulated", [0.5], [1.0]))


def test_older_records_have_another_name_for_the_sharing_of_time(tmp_path):
    old = {"schema": 1, "machine": {}, "versions": {}, "commit": "", "command": ""}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old | {"runs": [{"num_gpus": 2, "overlap": "in parallel"}]}))
    assert store.read(path)["runs"] == [{"num_gpus": 2, "sharing": "in parallel"}]
