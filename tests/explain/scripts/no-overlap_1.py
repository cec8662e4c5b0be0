"""All gradients are averaged one by one after the backward pass. --mended: DDP."""

import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
mended = "--mended" in sys.argv
width, depth = (256, 8) if mended else (384, 24)
net = nn.Sequential(
    *[m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, 10)
)
if mended:
    net = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
per_rank = (2048 if mended else 256) // world
for step in range(60):
    X, y = torch.randn(per_rank, width), torch.randint(10, (per_rank,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(X), y).backward()
    if not mended:
        for param in net.parameters():
            dist.all_reduce(param.grad)
            param.grad /= world
    optimizer.step()
dist.destroy_process_group()
