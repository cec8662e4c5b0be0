"""Scripts for GPUs on CPU cores: what they call works, and what they train is the same."""

import subprocess
import sys
from pathlib import Path

import pytest

from d2lmgpu.process.roles import LOOPBACK, held_ports
from d2lmgpu.watch.check.run import check

CALLS = Path(__file__).with_name("cuda_calls.py")

# In the styles in which such scripts are written.
SCRIPTS = {
    "torchrun": """
import os, torch
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 6), torch.randn(128, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, 8, sampler=sampler, pin_memory=True)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()
net = DDP(net, device_ids=[local_rank])
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        X, y = X.cuda(non_blocking=True), y.to(local_rank)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.mse_loss(net(X), y)
        scaler.scale(loss SLIP).backward()
        scaler.step(optimizer)
        scaler.update()
    torch.cuda.synchronize()
    dist.barrier(device_ids=[local_rank])
""",
    "spawned": """
import os, torch
import torch.multiprocessing as mp
from torch import distributed as dist, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

class Trainer:
    def __init__(self, rank, data):
        self.device = torch.device(f"cuda:{rank}" if torch.cuda.is_available() else "cpu")
        self.sampler = DistributedSampler(data, shuffle=False)
        self.loader = DataLoader(data, 8, sampler=self.sampler)
        net = nn.Linear(6, 1).to(self.device)
        self.net = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)

    def train(self):
        for epoch in range(2):
            for X, y in self.loader:
                X, y = X.to(self.device), y.to(self.device)
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.net(X), y, reduction="sum") / 8
                (loss SLIP).backward()
                self.optimizer.step()

def main(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "PORT"
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    Trainer(rank, TensorDataset(torch.randn(128, 6), torch.randn(128, 1))).train()
    dist.destroy_process_group()

if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(main, args=(world_size,), nprocs=world_size)
""",
}


def written(tmp_path, style, slip):
    (port,) = held_ports(1)
    script = tmp_path / "train.py"
    source = SCRIPTS[style].replace("SLIP", slip).replace("PORT", str(port))
    script.write_text(source, encoding="utf-8")
    return script


def test_what_scripts_for_gpus_call_works_without_one():
    (port,) = held_ports(1)
    environ = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), "PATH": "", "HOME": "/"}
    command = [sys.executable, "-W", "ignore", str(CALLS)]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "" and "asked for at train.py:7" in ran.stderr


@pytest.mark.parametrize("style", SCRIPTS)
def test_a_right_script_is_not_accused_and_what_was_on_cpu_cores_is_said(tmp_path, style):
    verdict = check(written(tmp_path, style, ""))
    assert verdict.defect == "none" and verdict.updates > 5
    assert any("cores of the CPU" in note and "train.py:" in note for note in verdict.notes)


def test_synchronised_batch_norm_of_two_devices_is_that_of_one(tmp_path):
    verdict = check(written(tmp_path, "torchrun", ""))
    assert verdict.outcome == "same" and verdict.difference < 1e-6


@pytest.mark.parametrize("style", SCRIPTS)
def test_a_wrong_script_is_found_wrong(tmp_path, style):
    verdict = check(written(tmp_path, style, "* dist.get_world_size()"))
    assert verdict.defect == "wrong-scale"
