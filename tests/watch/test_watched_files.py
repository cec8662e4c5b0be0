"""Scripts of readers under watch: they behave as without us, and their files stay as they were."""

import errno
import subprocess
import sys

import pytest
from deeds import snapshot
from without import without

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check.run import check
from d2lmgpu.watch.explain import explain
from d2lmgpu.watch.explain.script import OBSERVER, explain_script
from d2lmgpu.watch.run import run

TRAINS = """
import torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(40):
    optimizer.zero_grad()
    net(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""
CLEANS = """
import os, shutil
if os.environ.get("RANK", "0") == "0":
    shutil.rmtree("out")
    os.makedirs("out")
    os.rename("runs", "runs_old")
    open("out/log.txt", "w").write("new")
"""

# Idioms of right scripts; each prints what it sees.
IDIOMS = """
import glob, os, pathlib, shutil, sqlite3, tempfile

def show(*names):
    print(*names, sorted(str(path) for path in pathlib.Path().rglob("*")), flush=True)

shutil.rmtree("out"); os.makedirs("out"); show("made anew")
os.remove("log.txt"); open("log.txt", "x").write("new"); show(open("log.txt").read())
os.remove("log.txt"); print(os.path.exists("log.txt"))
open("runs/3.pt", "w").close(); print(max(glob.glob("runs/*.pt")), sorted(os.listdir("runs")))
os.symlink("runs/3.pt", "latest"); open("latest").close(); show(os.readlink("latest"))
shutil.copytree("runs", "copy"); shutil.move("runs", "moved"); show("moved")
os.rename("moved", "runs"); pathlib.Path("runs").rename("again"); show("renamed")
os.makedirs("full/of"); open("full/of/it", "w").close()
for to in ("full", "nowhere/at/all", "again/inside"):
    try:
        os.rename("again", to)
    except OSError as error:
        print(to, type(error).__name__, error.errno)
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/ck", "w").write("whole")
    shutil.move(folder + "/ck", "ck")
print(open("ck").read(), oct(os.stat("again").st_mode), os.access("again", os.W_OK))
base = sqlite3.connect("runs.db"); base.execute("create table t (x)"); base.commit()
print(os.path.getsize("kept.bin"), os.path.getmtime("kept.bin"))
open("kept.bin", "ab").write(b"more"); print(os.path.getsize("kept.bin"))
"""


OF_RANKS = """
import os
from torch import distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    open("ck.pt", "w").write("of rank 0")
    os.remove("log.txt")
dist.barrier()
assert open("ck.pt").read() == "of rank 0" and not os.path.exists("log.txt")
"""

SCRIPTS = {
    "train.py": TRAINS,
    "cleans.py": CLEANS + TRAINS,
    "idioms.py": IDIOMS + TRAINS,
    "ranks.py": OF_RANKS + TRAINS,
    "raises.py": "import os\nif os.environ['RANK'] == '1':\n    raise OSError('no disk')" + TRAINS,
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A reader's project, in which the test runs; afterwards it is as it was."""
    folder = tmp_path / "project"
    for file in ("out/best.txt", "runs/1.pt", "runs/2.pt", "log.txt", "kept.bin"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"the reader's own {file}")
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    yield folder
    assert snapshot(folder) == before


def test_right_scripts_see_what_they_would_see_without_us(project, tmp_path):
    watched = run("idioms.py", [], 1, OBSERVER)
    assert watched.trouble is None
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", project, copy], check=True)
    command = [sys.executable, "idioms.py"]
    alone = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    assert watched.output == alone.stdout and len(alone.stdout.splitlines()) > 12


def test_check_leaves_what_a_script_deletes_and_renames(project):
    assert check("cleans.py").defect == "not-exchanged"


@pytest.mark.needs("cores")
def test_explain_leaves_what_a_script_deletes_and_renames(project):
    assert "ms a step" in str(explain_script("cleans.py"))


@pytest.mark.soak
def test_a_function_of_a_notebook_leaves_what_it_deletes_and_renames(project):
    def train():
        exec(CLEANS + TRAINS, {})

    assert "ms a step" in str(explain(train, num_gpus=2))


def test_ranks_see_each_other_s_files(project):
    watched = run("ranks.py", [], 2, OBSERVER)
    assert watched.trouble is None and len(watched.reports) == 2


def test_a_rank_that_raises_before_it_trains_is_named(project):
    with pytest.raises(WatchError, match=r"no disk.*raises.py:3"):
        check("raises.py")


def command_without(calls, script, *options):
    return subprocess.run(
        [sys.executable, "-m", "d2lmgpu", "explain", *options, "--devices", "1", "--", script],
        capture_output=True,
        text=True,
        preexec_fn=lambda: without(calls),
    )


NEITHER = {"unshare": errno.EPERM, "landlock": errno.ENOSYS}


def test_without_protection_nothing_runs(project):
    done = command_without(NEITHER, "train.py")
    assert done.returncode == 2 and "--unprotected" in done.stderr
    assert "Operation not permitted" in done.stderr and "not implemented" in done.stderr


def test_without_a_view_what_is_refused_is_named_with_the_reason(project):
    done = command_without({"unshare": errno.EPERM}, "cleans.py")
    assert done.returncode == 2 and "cleans.py:4" in done.stderr  # the line that deletes
    assert "Permission denied" in done.stderr and "Operation not permitted" in done.stderr


def test_who_says_unprotected_gets_a_run_and_a_word(project):
    done = command_without(NEITHER, "train.py", "--unprotected")
    assert done.returncode in (0, 1) and "ms a step" in done.stdout  # without or with a cause
    assert "is written and removed" in done.stdout
