"""Scripts that cannot be explained: each is a clear answer, its files stay, nothing runs on.

None trains for longer than a moment; what they raise is looked at by its kind and what it names.
"""

import re
import sys
import textwrap

import psutil
import pytest
from processes import commands

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.explain.script import OBSERVER, explain_script
from d2lmgpu.watch.run import Limits, run

TRAINS = """
import torch
net = torch.nn.Linear(4, 1)
for _ in range(30):
    loss = net(torch.randn(8, 4)).sum()
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.01 * p.grad
"""

REFUSED = {  # what the script does -> (its text, words that the answer must hold)
    "ends at once": ("import sys; sys.exit('no data folder')", ["exit code 1", "no data folder"]),
    "needs arguments": (
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('folder'); p.parse_args()",
        ["exit code 2", "folder"],
    ),
    "has another framework": ("print('hello')", ["never imported PyTorch", "hello"]),
    "never trains": ("import torch; torch.zeros(3).sum()", ["never trained"]),
    "raises": ("n = 3\nraise RuntimeError('shape 3')", ["shape 3", "train.py:2"]),
    "lacks a package": ("n = 3\nimport no_such_package", ["no_such_package", "train.py:2"]),
    "is killed": ("import os; os.kill(os.getpid(), 9)", ["SIGKILL"]),
    "is no Python": ("def (", ["no Python script"]),
}


def children():
    """The processes that watch something for this one."""
    started = commands(psutil.Process().children())
    return [process for process, words in started.items() if "d2lmgpu.watch" in words]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.pt").write_text("the reader's own")
    return tmp_path


def written(folder, text):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return path


def untouched(folder):
    names = {path.name for path in folder.iterdir()}
    return names <= {"train.py", "model.pt"} and (
        (folder / "model.pt").read_text() == "the reader's own"
    )


@pytest.mark.needs("cores")
@pytest.mark.parametrize("what", REFUSED)
def test_a_script_that_does_not_train_is_an_answer(what, folder):
    text, words = REFUSED[what]
    with pytest.raises(WatchError) as error:
        explain_script(written(folder, text))
    assert all(word in str(error.value) for word in words)
    assert untouched(folder) and not children()


def test_whoever_waits_at_a_terminal_sees_what_for(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(written(folder, "n = 3"), [], 1, OBSERVER)
    first, *_, last = capsys.readouterr().err.split("\r")[1:]
    assert "train.py" in first and "1 process" in first
    assert not re.sub(r"\x1b\[K", "", last)


def test_a_script_that_is_not_there(folder):
    with pytest.raises(WatchError, match=r"nowhere\.py"):
        explain_script(folder / "nowhere.py")


def test_more_devices_than_there_are(folder):
    with pytest.raises(WatchError, match="devices=4096"):
        explain_script(written(folder, TRAINS), devices=(1, 4096))


def test_a_script_that_does_not_end_is_ended(folder):
    script = written(folder, "import time\nwhile True: time.sleep(1)")
    watched = run(script, [], 1, OBSERVER, limits=Limits(wall=1.0))
    assert watched.reports[0]["end"] == "wall" and "time limit" in watched.trouble
    assert not children()


def test_what_is_recorded_has_an_end(folder):
    watched = run(written(folder, TRAINS), [], 1, OBSERVER, limits=Limits(records=20))
    assert watched.reports[0]["end"] == "records" and 0 < watched.reports[0]["steps"] < 20


def test_a_pass_is_counted_once_whatever_modes_of_pytorch_s_see_it(folder):
    """A default device is one; without an optimizer a step is a backward pass."""
    script = """
import torch
torch.set_default_device("cpu")
net = torch.nn.Linear(4, 2)
for i in range(20):
    net(torch.ones(8, 4)).sum().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
"""
    (report,) = run(written(folder, script), [], 1, OBSERVER).reports
    assert (report["end"], report["steps"], report["backwards"]) == ("finished", 20, 20)


@pytest.mark.needs("cores")
def test_own_processes_are_watched_and_told(folder):
    explanation = explain_script(
        written(
            folder,
            """
        import os, torch
        from torch import distributed as dist, multiprocessing as mp

        def main(rank, world):
            store = dist.FileStore(os.environ["TMPDIR"] + "/store", world)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
            net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            for _ in range(20):
                optimizer.zero_grad()
                net(torch.randn(8, 4)).sum().backward()
                optimizer.step()
            torch.save(net.state_dict(), "model.pt")
            dist.destroy_process_group()

        if __name__ == "__main__":
            mp.spawn(main, args=(2,), nprocs=2)
    """,
        )
    )
    assert explanation.run.k == 2 and explanation.single is None and explanation.notes
    assert untouched(folder) and not children()


@pytest.mark.needs("cores")
def test_what_the_script_writes_it_reads_and_the_reader_keeps(folder, monkeypatch):
    monkeypatch.chdir(folder)
    script = written(
        folder,
        TRAINS
        + textwrap.dedent("""
        import os
        if os.environ["RANK"] == "0":  # the ranks have one folder
            torch.save(net.state_dict(), "model.pt")
            net.load_state_dict(torch.load("model.pt"))
            os.makedirs("logs/run", exist_ok=True)
            open("logs/run/log.txt", "w").write("a")
            with open("logs/run/log.txt", "a") as file:
                file.write("b")
            os.replace("logs/run/log.txt", "logs/kept.txt")
            assert open("logs/kept.txt").read() == "ab" and os.listdir("logs/run") == []
            os.remove("model.pt")
    """),
    )
    explanation = explain_script(script)
    assert (
        explanation.as_dict()["cause"] == "data-parallel" and explanation.run.rows == 8
    )  # without an optimizer
    assert untouched(folder)


def test_threads_and_cores_are_those_of_the_thread_that_trains(folder):
    """Also where the clock ends the run, in a thread that the script has not pinned."""
    script = written(
        folder,
        """
        import os
        import torch
        core = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
        torch.set_num_threads(3)
    """
        + textwrap.indent(TRAINS.replace("range(30)", "range(10**9)"), 8 * " "),
    )
    limits = Limits(steps=10**9, seconds=0.5, least=15)
    (report,) = run(script, [], 1, OBSERVER, limits=limits).reports
    assert report["end"] == "seconds" and report["steps"] >= 15
    assert len(report["cores"]) == 1 and report["threads"] == 3


def test_what_the_script_sets_of_its_process_has_a_line(folder):
    script = written(
        folder,
        """
        import os
        import psutil
        os.environ["OMP_NUM_THREADS"] = "2"
        psutil.Process().cpu_affinity(psutil.Process().cpu_affinity())
        import torch
        torch.set_num_threads(1)
    """
        + textwrap.indent(TRAINS, 8 * " "),
    )
    (report,) = run(script, [], 1, OBSERVER, limits=Limits(steps=9)).reports
    assert (
        report["set"].items()
        >= {"OMP_NUM_THREADS": "train.py:4", "cores": "train.py:5", "threads": "train.py:7"}.items()
    )
    assert report["environ"] == {"OMP_NUM_THREADS": "2"}
