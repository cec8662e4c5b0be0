"""Same, different, or not compared: scripts of unlike styles, and what may be said of each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from schemas import stated
from soaking import sample

from d2lmgpu.watch.check.run import OUTCOMES, check
from d2lmgpu.watch.run import Limits

FOLDER = Path(__file__).parent / "outcomes"
RIGHT = {  # a script and its options -> (outcome, defect)
    "masked_mean.py": ("different", "mean-of-means"),
    "spawned_trainer.py": ("different", "mean-of-means"),
    "spawned_trainer.py --right": ("same", "none"),
    "draws_in_turn.py": ("same", "none"),
    "drawn_alike.py": ("same", "none"),
    "numpy_draws.py": ("same", "none"),
    "random_draws.py": ("same", "none"),
    "closure.py": ("same", "none"),
    "own_data.py": ("not compared", "none"),
    "own_data.py --no-distributed": ("not compared", "none"),
}


def checked(script, *options):
    """What the command prints and its exit code."""
    name, *arguments = script.split()
    command = [sys.executable, "-m", "d2lmgpu", "check", *options, "--"]
    return subprocess.run([*command, FOLDER / name, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("script", sample(["masked_mean.py", "closure.py"], RIGHT))
def test_what_is_said_was_compared(script):
    done = checked(script, "--json")
    report = json.loads(done.stdout)
    assert (report["outcome"], report["defect"]) == RIGHT[script]
    assert done.returncode == OUTCOMES[report["outcome"]] and stated(report)
    if report["outcome"] == "same":
        assert report["equal"] is True and report["difference"] < 1e-12 and report["reason"] is None
    elif report["outcome"] == "different":
        assert report["equal"] is False and report["difference"] > 0.01
        assert (
            "backward()"
            in (FOLDER / report["where"].split(":")[0])
            .read_text()
            .splitlines()[int(report["where"].split(":")[1]) - 1]
        )
    else:
        assert report["equal"] is None and report["reason"] and report["where"] is None


def test_noise_that_all_ranks_draw_alike_by_numpy_is_named_with_its_seed():
    """The rows, which another generator of NumPy's draws, differ from rank to rank."""
    report = json.loads(checked("numpy_draws.py --noise", "--json").stdout)
    assert (report["outcome"], report["defect"]) == ("different", "same-seed")
    (number,) = (
        i
        for i, line in enumerate((FOLDER / "numpy_draws.py").read_text().splitlines(), 1)
        if line.startswith("np.random.seed")
    )
    assert report["where"] == f"numpy_draws.py:{number}"


@pytest.mark.parametrize("script", ["flat_parameters.py", "flat_parameters.py --views"])
def test_parts_of_a_flat_parameter_are_not_accused(script):
    report = json.loads(checked(script, "--json").stdout)
    assert (report["outcome"], report["defect"]) == ("not compared", "none")
    assert "FSDP" in report["reason"]


def test_a_part_of_the_weights_is_not_compared():
    done = checked("sharded_by_hand.py", "--json", "--progress")
    report = json.loads(done.stdout)
    assert done.returncode == OUTCOMES["not compared"] and stated(report)
    assert "parts" in report["reason"] and report["reason"] in done.stderr
    assert "run 1 of 2: sharded_by_hand.py in 2 processes\n" in done.stderr


COUNTING = """
import os, torch, torch.distributed as dist
threads, world = torch.get_num_threads(), int(os.environ["WORLD_SIZE"])
if world == 1 or threads > 1:
    raise SystemExit(f"{threads} in {world}")
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
trainer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    trainer.zero_grad()
    net(torch.randn(4, 2)).sum().backward()
    trainer.step()
"""


@pytest.mark.parametrize(("chosen", "threads"), [(None, 2), ("1", 1)])
def test_one_process_computes_on_the_cores_of_all(tmp_path, monkeypatch, chosen, threads):
    """But for a number that the reader has chosen."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if chosen:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    assert f"{threads} in 1" in check(script).reason


SLOW = """
import time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 2), torch.randn(64, 1))
sampler = DistributedSampler(data)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
trainer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(100):  # sampler.set_epoch(epoch) is missing
    for X, y in DataLoader(data, 8, sampler=sampler):
        time.sleep(PAUSE)
        trainer.zero_grad()
        ((net(X) - y) ** 2).mean().backward()
        trainer.step()
"""


@pytest.mark.parametrize(
    ("limits", "outcome", "updates"),
    [
        (Limits(seconds=0.1, least=1), "not compared", 1),
        (Limits(seconds=0.1, least=3), "same", 3),
        (Limits(seconds=0.1, least=6), "different", 6),
    ],
)
def test_of_a_slow_script_no_more_is_said_than_was_seen(tmp_path, limits, outcome, updates):
    """The defect shows in its second epoch, after four updates."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW.replace("PAUSE", "0.3"))
    verdict = check(script, limits=limits)
    assert (verdict.outcome, verdict.updates) == (outcome, updates)
    assert any("first epoch" in note for note in verdict.notes) == (outcome != "different")
    assert ("1 update " in (verdict.reason or "")) == (outcome == "not compared")


HELD = """
class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.X, self.y, self.names = DRAWN, torch.ones(64, 1), ["row"] * 64
        self.weights = torch.rand(64)  # no rows, and others on each rank

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        X = torch.tensor([float(number) for number in self.X[i]])
        return X, self.y[i]

data = Rows()
"""
DRAWN = "torch.rand(64, 2)"
DRAWN_BY_NUMPY = "__import__('numpy').random.rand(64, 2).astype('>f4')"  # big-endian, as in MNIST
ALIKE = "torch.arange(128).view(64, 2) / 100"


@pytest.mark.parametrize(
    ("drawn", "outcome"),
    [
        (DRAWN, "different"),
        (DRAWN_BY_NUMPY, "different"),
        (ALIKE, "same"),
    ],
)
def test_a_data_set_that_each_rank_has_drawn_is_seen_in_its_first_epoch(tmp_path, drawn, outcome):
    script = tmp_path / "held.py"
    text = SLOW.replace("torch.manual_seed(0)", "torch.manual_seed(dist.get_rank())")
    lines = text.replace("PAUSE", "0.1").splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("data = "))
    lines[place] = HELD.replace("DRAWN", drawn)
    script.write_text("\n".join(lines))
    verdict = check(script, limits=Limits(seconds=0.01, least=3))
    assert (verdict.outcome, verdict.defect == "sampler") == (outcome, outcome == "different")
