"""A recurrent cell written step by step with tiny states. --mended: one wide layer instead."""

import sys

import torch
import torch.distributed as dist
from torch import nn


class SlowCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.outside = nn.Linear(8, 16), nn.Linear(16, 16)

    def forward(self, x):
        h = torch.zeros(len(x), 16)
        for t in range(x.shape[1]):
            gate = torch.sigmoid(self.outside(h))
            h = gate * torch.tanh(self.inside(x[:, t])) + (1 - gate) * h
        return h


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(800, 512), nn.ReLU(), nn.Linear(512, 16))

    def forward(self, x):
        return self.layers(x.flatten(1))


mended = "--mended" in sys.argv
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
batch = (4096 if mended else 64) // world
net = nn.Sequential(Wide() if mended else SlowCell(), nn.Linear(16, 2))
net = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(60):
    X, y = torch.rand(batch, 100, 8), torch.randint(2, (batch,))
    loss = nn.functional.cross_entropy(net(X), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
