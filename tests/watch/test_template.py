"""Runs that are forked by the supervisor of the first one: as if each had been started."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest
from processes import marked
from tiny_script import TRAINS

from d2lmgpu.process.forks import can_fork
from d2lmgpu.watch.run import run
from d2lmgpu.watch.template import Template

pytestmark = pytest.mark.skipif(not can_fork(), reason="no descriptors of processes: not on Linux")
OBSERVER = "d2lmgpu.watch.check.observer"


@pytest.fixture
def printed(tmp_path):
    """What the script prints after "SEES", a line for each time, in a run of so many processes."""

    def watched(before, processes, template, after="", threads=1):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(before) + TRAINS + textwrap.dedent(after))
        options = {"double": False, "short": False, "devices": processes}
        environ = {"OMP_NUM_THREADS": str(threads)}
        done = run(script, [], processes, OBSERVER, options, environ=environ, template=template)
        assert done.trouble is None, done.explanation
        lines = [line for line in done.output.splitlines() if line.startswith("SEES ")]
        assert lines, done  # all that is known of such a run
        return sorted(line.removeprefix("SEES ") for line in lines)

    return watched


def test_later_runs_come_from_the_supervisor_of_the_first_one(printed):
    line = "import os, psutil; print('SEES', *[p.pid for p in psutil.Process().parents()])"
    with Template() as template:
        first, second = printed(line, 2, template)
        (later,) = printed(line, 1, template)
        supervisor = first.split()[0]
        assert supervisor == second.split()[0], "both ranks have one supervisor"
        assert supervisor in later.split()
        assert later.split()[0] != supervisor, "which is not that of the later run"
    assert not psutil.pid_exists(int(supervisor))


def test_each_run_draws_numbers_of_its_own_and_each_rank_has_its_order_of_sets(printed):
    line = """
    import os, random
    import numpy as np
    print("SEES", os.environ["RANK"], hash("a word"), random.random(), np.random.rand())
    """
    with Template() as template:
        runs = [*printed(line, 2, template), *printed(line, 1, template)]
    ranks, words, *numbers = zip(*map(str.split, runs))
    assert ranks == ("0", "1", "0")
    assert words[0] != words[1]
    assert all(len(set(drawn)) == 3 for drawn in numbers)


def test_a_run_has_the_threads_that_it_is_given(printed):
    line = "print('SEES', torch.get_num_threads())"
    with Template() as template:
        assert printed("", 2, template, line) == ["1", "1"]
        assert printed("", 1, template, line, threads=3) == ["3"]


@pytest.mark.parametrize(
    ("before", "sees"),
    [
        ("import os; os.environ['OMP_NUM_THREADS'] = '1'", "1"),
        ("import os; os.environ['MASTER_ADDR'] = 'localhost'", "2"),
    ],
)
def test_what_the_script_sets_before_it_imports_pytorch_counts(printed, before, sees):
    after = "print('SEES', torch.get_num_threads())"
    with Template() as template:
        for processes in (2, 1):
            assert printed(before, processes, template, after, 2) == [sees] * processes


# Every import that gets something of PyTorch must first let the watch's hooks in.
FIRST_IMPORTS = [
    "from torch.distributed import is_nccl_available as nccl",
    "from torchvision.transforms import torch; nccl = torch.distributed.is_nccl_available",
]


@pytest.mark.parametrize("line", FIRST_IMPORTS)
def test_whatever_the_script_imports_first_the_hooks_are_there_before(
    printed, tmp_path, monkeypatch, line
):
    package = tmp_path / "path" / "torchvision" / "transforms"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("import torch\n")
    (package / "__init__.py").write_text("import torch\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    before = f"""
    {line}
    print("SEES", nccl())
    """
    with Template() as template:
        for processes in (2, 1):
            assert printed(before, processes, template) == ["True"] * processes


def test_what_the_script_imports_of_torchvision_is_imported_once(printed, tmp_path, monkeypatch):
    package = tmp_path / "path" / "torchvision"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import os, torch\nPID = os.getpid()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    line = "import os, torchvision; print('SEES', os.getpid() == torchvision.PID)"
    with Template() as template:
        assert printed(line, 2, template) == ["False", "True"]  # rank 0 is forked, rank 1 started
        assert printed(line, 1, template) == ["False"]


def test_a_torchvision_that_cannot_be_imported_is_told_as_the_script_s_own_error(
    tmp_path, monkeypatch
):
    broken = tmp_path / "path" / "torchvision" / "__init__.py"
    broken.parent.mkdir(parents=True)
    slow = "import os, time\nif 'RANK' not in os.environ: time.sleep(6)\n"  # rank 1 ends first
    broken.write_text(f"import torch\n{slow}raise RuntimeError('an operator is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    script = tmp_path / "train.py"
    script.write_text("import torchvision\n" + TRAINS)
    options = {"double": False, "short": False, "devices": 2}
    with Template() as template:
        for processes in (2, 1):
            done = run(script, [], processes, OBSERVER, options, template=template)
            assert done.trouble == "The script raised RuntimeError: an operator is missing"


def test_a_module_beside_the_script_is_its_own_whatever_pytorch_imports(printed, tmp_path):
    (tmp_path / "pprint.py").write_text("WORDS = 'own'\npprint = pformat = repr")
    with Template() as template:
        for processes in (2, 1):
            line = "import pprint; print('SEES', pprint.WORDS)"
            assert printed(line, processes, template) == ["own"] * processes


def test_a_pytorch_that_cannot_be_imported_is_told_as_the_script_s_own_error(tmp_path, monkeypatch):
    broken = tmp_path / "path" / "torch" / "__init__.py"
    broken.parent.mkdir(parents=True)
    broken.write_text("raise RuntimeError('a library is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    script = tmp_path / "train.py"
    script.write_text(TRAINS)
    options = {"double": False, "short": False, "devices": 2}
    with Template() as template:
        done = run(script, [], 2, OBSERVER, options, template=template)
    assert done.trouble == "The script raised RuntimeError: a library is missing"


def test_where_the_first_supervisor_is_killed_the_next_run_is_started(printed):
    line = "import os; print('SEES', os.getppid())"
    with Template() as template:
        supervisor = int(printed(line, 2, template)[0])
        os.kill(supervisor, signal.SIGKILL)
        (later,) = printed(line, 1, template)
        assert int(later) != supervisor


def test_of_a_caller_that_is_killed_in_a_later_run_nothing_is_left(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAINS.replace("range(3)", "range(10**9)"))
    mark = f"MARK-{os.getpid()}-{tmp_path.name}"
    command = [sys.executable, "-m", "d2lmgpu", "check", "--progress", script]
    environ = os.environ | {"D2LMGPU_TEST": mark, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as caller:
        for line in caller.stderr:
            if "run 2" in line:
                break
        caller.kill()
    assert psutil.wait_procs(marked("D2LMGPU_TEST", mark), timeout=20)[1] == []
    assert [*tmp_path.glob("d2lmgpu-*")] == []
