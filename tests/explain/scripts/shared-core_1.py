"""Every rank pins itself to the first core. --mended: each to its own."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cores[rank] if "--mended" in sys.argv else cores[0]})
torch.manual_seed(0)
net = DDP(
    nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 11 * 11, 10),
    )
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(60):
    X, y = torch.randn(128 // world, 1, 28, 28), torch.randint(10, (128 // world,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(X), y).backward()
    optimizer.step()
dist.destroy_process_group()
