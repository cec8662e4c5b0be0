"""A plan whose entries are misspelt: PyTorch warns, and every rank trains the whole net."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(10, 16)
        self.net1 = nn.Linear(16, 32)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(32, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(self.inp(x).tanh())))


device_mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
torch.manual_seed(0)
model = ToyModel()
model = parallelize_module(
    model, device_mesh, {"net_1": ColwiseParallel(), "net_2": RowwiseParallel()}
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.25)

for i in range(12):
    # For TP, input needs to be the same across all TP ranks.
    torch.manual_seed(i)
    inp = torch.rand(20, 10)
    output = model(inp)
    output.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
