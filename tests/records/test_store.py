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
        cwd=working_folder,
        env=os.environ | {"PYTHONPATH": str(package)},
        check=True,
        capture_output=True,
        text=True,
    )
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


RIGHT = {
    "schema": 2,
    "machine": {"cpu": "A", "cores": 2, "gpus": []},
    "versions": {},
    "commit": "c",
    "command": "python",
    "date": "today",
}
OUTCOME = {
    "title": "t",
    "seconds": 1,
    "at": 0.5,
    "said": "",
    "rows": [["a", "s", 1.5, None]],
    "lanes": {"n1": [["trains", 0, 1]]},
}


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"runs": None}, "runs is null, not a list"),
        ({"runs": {}}, "runs is an object, not a list"),
        ({"runs": [{}, None]}, r"runs\[1\] is null, not an object"),
        ({"runs": "none"}, "runs is a text, not a list"),
        ({"machine": None}, "machine is null, not an object"),
        ({"machine": []}, "machine is a list, not an object"),
        ({"machine": {"cpu": "A", "gpus": []}}, "there is no machine.cores"),
        ({"machine": RIGHT["machine"] | {"cores": "2"}}, "machine.cores is a text"),
        ({"machine": RIGHT["machine"] | {"cores": True}}, "machine.cores is true or false"),
        ({"machine": RIGHT["machine"] | {"gpus": [1]}}, r"machine.gpus\[0\] is a whole number"),
        ({"versions": {"torch": None}}, "versions.torch is null, not a text"),
        ({"commit": 3}, "commit is a whole number, not a text"),
        ({"command": ["a"]}, "command is a list, not a text"),
        ({"schema": "2"}, "schema is a text, not a whole number"),
        ({"schema": 3}, "its schema is 3, not 1 to 2"),
        ({"profile": None}, "profile is null, not a text"),
        ({"speedups": 1.5}, "speedups is a number, not a list"),
        ({"outcomes": [OUTCOME | {"rows": [["a"]]}]}, r"there is no outcomes\[0\].rows\[0\]\[1\]"),
        ({"outcomes": [OUTCOME | {"lanes": None}]}, r"outcomes\[0\].lanes is null"),
        ({"outcomes": [OUTCOME | {"title": 1}]}, r"outcomes\[0\].title is a whole number"),
    ],
)
def test_a_record_of_another_shape_is_refused_by_name_and_place(tmp_path, wrong, words):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(RIGHT | {"runs": [{}], "outcomes": [OUTCOME]}))
    assert store.read(path)["runs"] == [{}]
    path.write_text(json.dumps(RIGHT | wrong))
    with pytest.raises(store.RecordError, match=rf"x\.json is no record of this course: {words}"):
        store.read(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "null",
        '"text"',
        '{"schema": 3}',
        '{"schema": 1}',
        "[" * 10**5,
        json.dumps(RIGHT | {"runs": [{"lr": float("nan")}]}),
        json.dumps(RIGHT)[:-3],
    ],
)
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
    old = RIGHT | {"schema": 1}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old | {"runs": [{"num_gpus": 2, "overlap": "in parallel"}]}))
    assert store.read(path)["runs"] == [{"num_gpus": 2, "sharing": "in parallel"}]
