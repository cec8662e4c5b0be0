"""Scripts for GPUs on CPU cores: what they call works, and what they train is the same."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from soaking import sample

from d2lmgpu.process.addresses import LOOPBACK, held_ports
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check.run import check
from d2lmgpu.watch.explain.script import explain_script
from d2lmgpu.watch.ranks import MEETING

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
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    Trainer(rank, TensorDataset(torch.randn(128, 6), torch.randn(128, 1))).train()
    dist.destroy_process_group()

if __name__ == "__main__":
    # a machine of somebody's cluster
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "10.9.8.7", "PORT"
    world_size = torch.cuda.device_count()
    mp.spawn(main, args=(world_size,), nprocs=world_size)
""",
}


# As before there was torchrun: the launcher gives the rank as an argument, and the script says
# where all meet, at an address of its author's cluster.
SCRIPTS["launched"] = (
    SCRIPTS["torchrun"]
    .replace(
        'local_rank = int(os.environ["LOCAL_RANK"])',
        """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.add_argument("-s", type=int)
options = parser.parse_args()
local_rank = options.local_rank""",
    )
    .replace(
        'dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))',
        'dist.init_process_group("nccl", "tcp://10.9.8.7:23456", None, options.s, local_rank)',
    )
)


def written(tmp_path, style, slip):
    (port,) = held_ports(1)
    script = tmp_path / "train.py"
    source = SCRIPTS[style].replace("SLIP", slip).replace("PORT", str(port))
    script.write_text(source, encoding="utf-8")
    return script


def test_what_scripts_for_gpus_call_works_without_one():
    (port,) = held_ports(1)
    environ = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), MEETING: f"{LOOPBACK}:{port}"}
    environ |= {"PATH": "", "HOME": "/"}
    command = [sys.executable, "-W", "ignore", str(CALLS)]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "" and "asked for at train.py:7" in ran.stderr


@pytest.mark.skipif(
    torch.version.cuda is not None, reason="PyTorch's build for GPUs takes a number for one of them"
)
def test_a_device_that_is_a_number_alone_is_refused_with_its_line_and_what_to_write(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch\ndevice = torch.device(0)\n", encoding="utf-8")
    with pytest.raises(WatchError, match=r"torch\.device\('cuda', 0\).*train\.py:2"):
        explain_script(script, devices=(1, 1))


def test_a_right_script_is_the_same_and_what_was_on_cpu_cores_is_said(tmp_path):
    """Its SyncBatchNorm, too: with the batch norm of each rank's rows two devices differ."""
    arguments = ["--local_rank={rank}", "-s", "{world_size}"]
    verdict = check(written(tmp_path, "launched", ""), arguments)
    assert verdict.outcome == "same" and verdict.difference < 1e-6 and verdict.updates > 5
    assert any("cores of the CPU" in note and "train.py:" in note for note in verdict.notes)


def test_a_loss_that_is_divided_by_a_number_is_not_accused(tmp_path):
    verdict = check(written(tmp_path, "spawned", ""))
    assert verdict.outcome == "not compared" and "does not grow" in verdict.reason


@pytest.mark.parametrize("style", sample(["torchrun"], ["torchrun", "spawned"]))
def test_a_wrong_script_is_found_wrong(tmp_path, style):
    verdict = check(written(tmp_path, style, "* dist.get_world_size()"))
    assert verdict.defect == "wrong-scale"


COSTLY = """
import os, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader, TensorDataset

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
data = TensorDataset(torch.randn(1024, 6), torch.randn(1024, 1))
PRECISION
loader = LOADER
net = nn.parallel.DistributedDataParallel(nn.Linear(6, 1).cuda(), OPTIONS)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)  # asks for numbers of its own
kept = 0
for epoch in range(8):
    for X, y in loader:
        X, y = X.cuda(non_blocking=True), y.cuda(non_blocking=True)
        optimizer.zero_grad()
        out = net(X)
        loss = nn.functional.mse_loss(out, y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        WAITING
"""
WAITING = {
    "kept += loss.item()": 1,
    "kept += float(loss) + loss.detach().cpu().numpy() + sum(out.flatten().tolist())": 3,
    "if loss > 1e9: print(loss)": 1,
    "part = out[y > 0]": 1,
    "print(loss)": 1,
    "kept = kept + loss.detach()": 0,
}
CHEAP = {
    "PRECISION": "torch.set_float32_matmul_precision('high')",
    "LOADER": "DataLoader(data, 16, num_workers=1, pin_memory=True)",
    "OPTIONS": "device_ids=[0]",
}
DEAR = {
    "PRECISION": "",
    "LOADER": "DataLoader(data, 16)",
    "OPTIONS": "find_unused_parameters=True",
}


def costs(tmp_path, **parts):
    """{what: [times a step, or None]} of a script with these parts, by the line that it names."""
    source = COSTLY
    for name, part in parts.items():
        source = source.replace(name, part)
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    by_line = {}
    for what, where, times in explain_script(script, devices=(1, 1)).costs:
        line = source.splitlines()[int(where.partition(":")[2]) - 1].strip() if where else ""
        by_line.setdefault((what, line), []).append(times)
    return by_line


@pytest.mark.parametrize("line", sample(2, WAITING))
def test_the_lines_at_which_the_host_would_wait_are_counted(tmp_path, line):
    times = WAITING[line]
    expected = {("wait", line): [pytest.approx(times, abs=0.1)]} if times else {}
    assert costs(tmp_path, WAITING=line, **CHEAP) == expected


def test_what_would_cost_on_a_gpu_is_named_with_its_line(tmp_path):
    assert costs(tmp_path, WAITING="pass", **DEAR).keys() == {
        ("pageable", "loader = DataLoader(data, 16)"),
        ("no workers", "loader = DataLoader(data, 16)"),
        ("unused", COSTLY.splitlines()[10].replace("OPTIONS", DEAR["OPTIONS"])),
        ("float32", ""),
    }


LIBRARY = """
import torch

def prepared(net):
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return net.to("cuda" if count else "cpu"), torch.ones(2, device=torch.device("cuda", 0))
"""


def test_nothing_of_a_script_for_the_cpu_is_said_to_cost_on_a_gpu(tmp_path, monkeypatch):
    """Not even if a library that it calls takes a GPU, or PyTorch looks for one."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "taking_what_there_is.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(library))
    source = COSTLY.replace("nccl", "gloo")
    for gpu in ('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))', ".cuda(non_blocking=True)"):
        source = source.replace(gpu, "")
    source = source.replace(".cuda()", "").replace("WAITING", "print(loss)")
    source = "import taking_what_there_is as library" + source
    source = source.replace("optimizer = ", "library.prepared(net)\noptimizer = ")
    source = source.replace("LOADER", "DataLoader(data, 16, pin_memory=True)")
    for name, part in DEAR.items():
        source = source.replace(name, part)
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    answer = explain_script(script, devices=(1, 1))
    assert answer.costs == [] and not any("GPU" in note for note in answer.notes)
