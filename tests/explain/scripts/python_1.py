"""A thread that keeps statistics of the losses, in Python, all the time. --mended: without."""

import random
import statistics
import sys
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

losses = [random.random() for _ in range(2000)]


def keep_statistics():
    while True:
        statistics.median(sorted(losses[-2000:], key=lambda x: x * x + 1))


if "--mended" not in sys.argv:
    threading.Thread(target=keep_statistics, daemon=True).start()
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
for step in range(60):
    X, y = torch.randn(128 // world, 1, 28, 28), torch.randint(10, (128 // world,))
    loss = nn.functional.cross_entropy(net(X), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
dist.destroy_process_group()
