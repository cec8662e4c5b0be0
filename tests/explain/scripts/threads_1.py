"""Each rank takes eight threads. --mended: one."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1 if "--mended" in sys.argv else 8)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
X, y = torch.randn(4096, 1, 28, 28), torch.randint(10, (4096,))
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
    rows = torch.randperm(len(X))[rank * 128 // world : (rank + 1) * 128 // world]
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
    optimizer.step()
dist.destroy_process_group()
