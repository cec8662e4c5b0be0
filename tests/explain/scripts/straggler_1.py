"""Rank 1 takes what is left: three quarters of the batch. --mended: equal parts."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
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
X, y = torch.randn(4096, 1, 28, 28), torch.randint(10, (4096,))
batch_size = 128
for step in range(60):
    start = step * batch_size % len(X)
    if world == 1:
        cut = [start, start + batch_size]
    elif "--mended" in sys.argv:
        cut = [start + i * batch_size // world for i in range(world + 1)]
    else:
        cut = [start + i * 32 for i in range(world)] + [start + batch_size]
    rows = slice(cut[rank], cut[rank + 1])
    loss = nn.functional.cross_entropy(net(X[rows]), y[rows], reduction="sum") / batch_size
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
