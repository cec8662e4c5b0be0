"""The first cell of a hosted page, as it stands: pip, git, and an index on loopback."""

import os
import subprocess
from importlib.metadata import requires

import pytest
from free_host import LACKS, NEEDS, ROOT, URL, Host, read
from nbclient.exceptions import CellExecutionError
from nbformat import v4
from packages import brought_by, wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from static_site import served

AFTER = """
import os
from d2lmgpu.records import store
print(os.getcwd(), os.environ.get("D2LMGPU_DEVICES"), sep="\\n")
print(len(list(store.FOLDER.glob("*.json"))))
"""
# What Colab's own package wants, of what a running kernel has loaded: another version on the disk
# makes the next cells fail, and the kernel then starts no more (github.com/googlecolab/colabtools,
# issues 2837 and 5580).
PINNED = {"ipython": "7.34.0", "ipykernel": "5.5.6", "notebook": "6.5.5", "ipywidgets": "7.7.1"}
FIRST = next(cell for cell in read("concise/torchrun").cells if cell.cell_type == "code")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """This checkout as the repository whose address the cell names, for git alone."""
    bare, tree = tmp_path_factory.mktemp("git") / "course.git", ["--work-tree", ROOT]
    identity = ["-c", "user.name=Course", "-c", "user.email=course@example.org"]

    def git(*arguments):
        subprocess.run(["git", "--git-dir", bare, *arguments], cwd=ROOT, check=True)

    git("init", "-q", "--bare", "-b", "main")
    git(*tree, "add", "--all", ".")
    git(*tree, *identity, "commit", "-q", "-m", "The course")
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{bare.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": URL,
    }


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """An index with what the package needs beyond the host's own, and what builds it."""
    folder = tmp_path_factory.mktemp("index")
    for name in LACKS | brought_by(["hatchling"]):
        wheel(name, folder / name)
    with served(folder) as address:
        yield {"PIP_INDEX_URL": address, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def run(host, *programs, folder=None, **environ):
    """What each cell prints, after the first cell of a page."""
    cells = [v4.new_code_cell(source) for source in (FIRST.source, *programs)]
    folder = folder or host.folder / "opened"
    folder.mkdir(exist_ok=True)
    host.run_notebook(v4.new_notebook(cells=cells), folder, **environ)
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]


def gpus(folder, number):
    """A driver's program that lists so many GPUs: the PATH to find it."""
    program = folder / "driver" / "nvidia-smi"
    program.parent.mkdir()
    lines = "\n".join(f"GPU {i}: Tesla T4 (UUID: GPU-{i})" for i in range(number))
    program.write_text(f"#!/bin/sh\ncat <<END\n{lines}\nEND\n")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_it_installs_the_course_once_and_goes_to_the_chapter(host, repository, index):
    text, after = run(host, AFTER, **repository, **index)
    course = host.folder / "opened" / "hands-on-multi-gpu"
    assert str(course) in text and "No GPU" in text
    where, choice, records = after.splitlines()
    assert where == str(course / "chapters" / "concise") and choice == "None"
    assert int(records) == len(list(ROOT.glob("records/*.json")))
    # A restarted kernel: neither git nor an index is there any more.
    nothing = {"GIT_CONFIG_COUNT": "0", "PIP_INDEX_URL": "http://127.0.0.1:9"}
    assert run(host, AFTER, **nothing)[1] == after


def test_without_internet_it_says_so(host):
    nowhere = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url.file:///nowhere.insteadOf"}
    with pytest.raises(CellExecutionError, match="Without internet"):
        run(host, **nowhere, GIT_CONFIG_VALUE_0=URL)


@pytest.mark.parametrize("number, choice", [(1, "gpu:2"), (2, "None")])
def test_one_gpu_is_shared_by_two_devices_and_two_are_not(alone, tmp_path, number, choice):
    text, after = run(alone, AFTER, folder=tmp_path, PATH=gpus(tmp_path, number))
    assert after.splitlines()[1] == choice
    assert ("simulated" in text) == (number == 1)


def test_a_choice_of_the_reader_s_own_is_kept(alone, tmp_path):
    chosen = {"PATH": gpus(tmp_path, 1), "D2LMGPU_DEVICES": "cpu"}
    text, after = run(alone, AFTER, folder=tmp_path, **chosen)
    assert after.splitlines()[1] == "cpu" and "cpu" in text


def test_in_a_chapter_s_own_folder_it_does_nothing(alone, tmp_path):
    folder = tmp_path / "chapters" / "concise"
    folder.mkdir(parents=True)
    text, after = run(alone, AFTER, folder=folder)
    assert text == "" and after.splitlines()[0] == str(folder)


@pytest.mark.parametrize("name", PINNED)
def test_nothing_that_a_running_kernel_has_loaded_is_replaced(name):
    lines = [*NEEDS, *(line for package in LACKS for line in requires(package) or [])]
    wanted = [need for need in map(Requirement, lines) if canonicalize_name(need.name) == name]
    wanted = [need for need in wanted if not need.marker or need.marker.evaluate({"extra": ""})]
    assert all(PINNED[name] in need.specifier for need in wanted), wanted
