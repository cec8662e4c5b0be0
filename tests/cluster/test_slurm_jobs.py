"""The ready job files train, on the box: by sbatch, as an array, and by ssh."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from d2lmgpu.data.datasets import fashion_mnist

ROOT = Path(__file__).parents[2]
FEW = ["--num-train", "242", "--num-test", "100", "--batch-size", "120"]
SMALL = [*FEW, "--epochs", "1"]
SCRIPT = [*SMALL, "--data", "data"]  # what stands alone has to be told where its data are


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder with the job files and the script in it, where the output may go."""
    for name in ("clusters", "chapters/concise", "chapters/clusters", "chapters/memory"):
        shutil.copytree(ROOT / name, tmp_path / name)
    fashion_mnist(242, 100).save(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def submitted(slurm, *words):
    """The number of the job that sbatch makes of ``words``, once it is over."""
    number = submit(slurm, *words)
    while number in running(slurm):
        time.sleep(0.2)
    return number


def submit(slurm, *words):
    environ = os.environ | {"SLURM_CONF": str(slurm.folder / "slurm.conf")}
    return subprocess.check_output(
        ["sbatch", "--parsable", *map(str, words)], text=True, env=environ
    ).strip()


def running(slurm):
    return slurm.ask("squeue", "--noheader", "--format=%F").splitlines()


def apart(weights, other):
    return (weights - other).norm() / other.norm()


def ssh_script(slurm, *words):
    ssh = f"ssh -F {slurm.folder}/ssh_config"
    return subprocess.Popen(
        ["clusters/jobs/torchrun-ssh.sh", "n1 n2", "1", *words],
        env=os.environ | {"SSH": ssh},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def script_weights(folder):
    """Of the newest checkpoint of the script that stands alone."""
    state = torch.load(max(folder.glob("epoch-*.pt")), weights_only=True)["net"]
    return torch.cat([tensor.flatten() for tensor in state.values()])


def test_by_sbatch_and_by_ssh_the_script_trains_as_one_process_does(slurm, course):
    number = submitted(slurm, "clusters/jobs/torchrun.sbatch", *SCRIPT, "--checkpoints", "slurm")
    text = (course / f"torchrun-{number}.out").read_text()
    assert (course / "slurm").exists(), text
    assert text.count("epoch 1: loss") == 1
    environ = f"PYTHONPATH={ROOT} {sys.executable}"
    os.environ["PYTHON"] = environ  # ssh takes none of this environment along
    with ssh_script(slurm, *SCRIPT, "--checkpoints", "ssh") as process:
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    os.environ["PYTHON"] = sys.executable
    alone = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    alone += ["chapters/concise/train_ddp_overnight.py", *SCRIPT, "--checkpoints", "alone"]
    subprocess.run(alone, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    weights = script_weights(course / "alone")
    for folder in ("slurm", "ssh"):
        assert apart(script_weights(course / folder), weights) < 1e-5
    assert slurm.left_at_last() == []


def test_mxnet_s_roles_train_as_one_process_does(slurm, course):
    number = submitted(slurm, "clusters/jobs/mxnet.sbatch", *SMALL, "--save", "slurm.npz")
    text = (course / f"mxnet-{number}.out").read_text()
    assert (course / "slurm.npz").exists(), text
    assert text.count("epoch 1: test accuracy") == 1
    alone = [sys.executable, "chapters/clusters/train_mxnet.py", *SMALL, "--save", "alone.npz"]
    subprocess.run(alone, check=True)
    single, four = np.load("alone.npz"), np.load("slurm.npz")
    assert set(single) == set(four) and len(single) == 8
    for name in single:
        assert np.linalg.norm(four[name] - single[name]) < 1e-5 * np.linalg.norm(single[name]), name
    assert slurm.left_at_last() == []


@pytest.mark.soak
def test_when_one_of_mxnet_s_workers_fails_all_end(slurm, course):
    """The worker of local rank 1 on n2 alone cannot read the script's data."""
    script = course / "chapters/clusters/train_mxnet.py"
    fails = "    if os.environ.get('SLURM_PROCID') == '3':\n        raise OSError('no data')\n"
    begins = "    kv = kvstore.create("
    script.write_text(script.read_text().replace(begins, fails + begins))
    number = submitted(slurm, "clusters/jobs/mxnet.sbatch", *SMALL)
    text = (course / f"mxnet-{number}.out").read_text()
    assert "OSError: no data" in text and "epoch" not in text
    assert slurm.left_at_last() == []


def test_the_elastic_job_trains_on_both_nodes_and_goes_on_when_submitted_again(slurm, course):
    words = ["clusters/jobs/elastic.sbatch", "--num-train=242", "--checkpoints=saved"]
    for epochs in (1, 2):
        number = submitted(slurm, *words, f"--epochs={epochs}", "--timeline=timeline")
        text = (course / f"elastic-{number}.out").read_text()
        assert list((course / "saved").glob(f"step-{3 * epochs:08}-*")), text
    lines = [json.loads(x) for f in course.glob("timeline/*") for x in f.read_text().splitlines()]
    begun = sorted((line["step"], line["host"]) for line in lines if line["what"] == "begins")
    assert begun == [(0, "n1"), (0, "n2"), (3, "n1"), (3, "n2")]
    assert slurm.left_at_last() == []


def test_a_warning_to_the_job_file_alone_saves_and_stops_the_elastic_training(slurm, course):
    """As Slurm sends it before the time is over, by `--signal=B:TERM@120`."""
    words = ["--num-train=242", "--checkpoints=saved", "--epochs=10000", "--timeline=timeline"]
    number = submit(slurm, "clusters/jobs/elastic.sbatch", *words)

    def lines(what):
        texts = [x for f in course.glob("timeline/*") for x in f.read_text().splitlines()]
        return [line for line in map(json.loads, texts) if line["what"] == what]

    while len(lines("begins")) < 2:
        assert number in running(slurm), (course / f"elastic-{number}.out").read_text()
        time.sleep(0.2)
    slurm.ask("scancel", "--batch", "--signal=TERM", number)
    while number in running(slurm):
        time.sleep(0.2)
    stopped = {line["host"]: line["step"] for line in lines("stops")}
    assert set(stopped) == {"n1", "n2"} and len({*stopped.values()}) == 1
    assert list((course / "saved").glob(f"step-{stopped['n1']:08}-*"))
    assert slurm.left_at_last() == []


@pytest.mark.soak
def test_an_array_runs_one_job_a_learning_rate(slurm, course):
    number = submitted(slurm, "--array=0,3", "clusters/jobs/sweep.sbatch", *SCRIPT)
    for i, lr in ((0, 0.01), (3, 0.1)):
        text = (course / f"sweep-{number}-{i}.out").read_text()
        assert text.startswith(f"lr {lr}\n") and "epoch 1: loss" in text
        (file,) = Path(f"sweep-{number}-lr-{lr}").iterdir()
        assert torch.load(file, weights_only=True)["settings"]["lr"] == lr


def test_an_interrupted_ssh_script_leaves_nothing(slurm, course, monkeypatch):
    monkeypatch.setenv("PYTHON", f"PYTHONPATH={ROOT} {sys.executable}")
    with ssh_script(slurm, *SCRIPT, "--epochs", "1000") as process:
        for line in process.stdout:
            if line.startswith("epoch 1:"):
                break
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=10)
    assert slurm.left_at_last() == []


FSDP = [
    "--text=clusters/jobs/limit.sbatch",
    "--width=16",
    "--tokens=12",
    "--batch-size=8",
    "--steps=6",
    "--save-every=6",
]
# The first run is in its fourth step when the warning comes, however fast the machine is.
WAITS = """
def batch(text, args, step, batch=batch):
    if step == 4 and "SLURM_RESTART_COUNT" not in os.environ:
        from threading import Event

        came, handler = Event(), signal.getsignal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, lambda *both: (came.set(), handler(*both)))
        Path(f"waits-{dist.get_rank()}").touch()
        while not came.wait(0.1):
            pass
    return batch(text, args, step)


"""


def steps(text):
    return re.findall(r"^step (\d+): loss (\S+)$", text, flags=re.MULTILINE)


def test_at_its_limit_a_job_saves_is_put_back_and_goes_on_as_if_undisturbed(slurm, course):
    script = course / "chapters/memory/train_fsdp.py"
    begins = 'if __name__ == "__main__":'
    script.write_text(script.read_text().replace(begins, WAITS + begins))
    words = ["--time=30", "--ntasks-per-node=1", "clusters/jobs/limit.sbatch", *FSDP]
    number = submit(slurm, *words, "--checkpoints=saved")
    one_too_many = submit(slurm, "--dependency=singleton", *words, "--checkpoints=saved")
    file = course / f"limit-{number}.out"
    undisturbed = subprocess.check_output(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
            ROOT / "chapters/memory/train_fsdp.py",
            *FSDP,
        ],
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    while len([*course.glob("waits-*")]) < 2:
        assert number in running(slurm), file.read_text()
        time.sleep(0.2)
    # whoever looks into the running job sees its rank there
    there = ["srun", f"--jobid={number}", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=n2"]
    (rank,) = slurm.ask(*there, "pgrep", "-f", "^[^ ]*python[^ ]* chapters/memory").split()
    assert int(rank) > 0
    # the limit comes near: in less than the two minutes of --signal
    minutes = slurm.ask("squeue", "--noheader", "--format=%M", "-j", number).split(":")[-2]
    slurm.ask("scontrol", "update", f"JobId={number}", f"TimeLimit={int(minutes) + 2}")
    while "Restarts=1" not in slurm.ask("scontrol", "show", "job", number):
        assert number in running(slurm), file.read_text()
        time.sleep(0.2)
    slurm.ask("scontrol", "update", f"JobId={number}", "TimeLimit=30")
    while number in running(slurm):
        time.sleep(0.2)
    text = file.read_text()
    assert len(steps(undisturbed)) == 6 and steps(text) == steps(undisturbed), text
    saved = sorted(path.name for path in (course / "saved").iterdir())
    assert saved == ["step-00000004", "step-00000006"]
    while one_too_many in running(slurm):
        time.sleep(0.2)
    assert steps((course / f"limit-{one_too_many}.out").read_text()) == []
    assert slurm.left_at_last() == []


def test_srun_ends_with_128_more_than_the_signal_that_ended_its_task(slurm):
    for number in (signal.SIGKILL, signal.SIGSEGV):
        asked = f"srun --nodes=1 --ntasks=1 sh -c 'kill -{number:d} $$'; echo $?"
        assert slurm.ask("sh", "-c", asked) == str(128 + number)
