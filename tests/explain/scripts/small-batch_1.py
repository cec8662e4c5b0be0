"""A batch of 8 over all devices. --mended: 512."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

batch_size = 512 if "--mended" in sys.argv else 8
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
X, y = torch.randn(batch_size * 16, 1, 28, 28), torch.randint(10, (batch_size * 16,))
net = DDP(
    nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Sigmoid(),
        nn.Linear(120, 84),
        nn.Sigmoid(),
        nn.Linear(84, 10),
    )
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.9)
mine = batch_size // world
for epoch in range(6):
    for i in range(0, len(X), batch_size):
        rows = slice(i + rank * mine, i + (rank + 1) * mine)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
        optimizer.step()
dist.destroy_process_group()
