"""A notebook's function that saves: killed and launched again, it ends as if nothing had been."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from torch import nn

from d2lmgpu.launch import LaunchError, launch
from d2lmgpu.process import checkpoints


def worker(folder, dies_at):
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    checkpoint, begun = checkpoints.newest(folder, net), 0
    if checkpoint:
        begun = checkpoint.step
        net.load_state_dict(checkpoint.net)
        optimizer.load_state_dict(checkpoint.rest["optimizer"])
    dist.barrier()  # all have read before one writes
    for step in range(begun, 6):
        X = torch.full((3, 4), float(step + rank))
        optimizer.zero_grad()
        net(X).square().mean().backward()
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)
        if (rank, step) == (1, dies_at):
            os.kill(os.getpid(), signal.SIGKILL)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if rank == 0 and step % 2:
            checkpoints.save(folder, step + 1, net, optimizer=optimizer.state_dict())
    return begun, net.state_dict()


def test_launched_again_it_goes_on(tmp_path):
    _, expected = launch(worker, tmp_path / "undisturbed", None, num_processes=2)[0]
    with pytest.raises(LaunchError, match="Worker 1 of 2 was killed by SIGKILL"):
        launch(worker, tmp_path / "killed", 4, num_processes=2)
    begun, weights = launch(worker, tmp_path / "killed", None, num_processes=2)[0]
    assert begun == 4
    assert all(torch.equal(weights[name], value) for name, value in expected.items())


def elastic(folder, *options):
    """The page's script as the only rank."""
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    script = Path(__file__).parents[2] / "chapters/clusters/train_elastic.py"
    return subprocess.run(
        [sys.executable, script, "--num-train=242", f"--checkpoints={folder}", *options],
        env=os.environ | alone,
        text=True,
        capture_output=True,
    )


@pytest.mark.soak
def test_the_script_goes_on_with_its_own_settings_only(tmp_path):
    assert elastic(tmp_path, "--epochs=1").returncode == 0
    other = elastic(tmp_path, "--epochs=2", "--seed=3")
    assert other.returncode == 1 and "begun with seed=0, not 3" in other.stderr
    assert elastic(tmp_path, "--epochs=2", "--batch-size=40").returncode == 0
    assert sorted(int(file.name[5:13]) for file in tmp_path.iterdir()) == [3, 10]
