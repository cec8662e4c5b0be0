"""A class that averages gradients in a ring of sends and receives; one process has no ring."""

import os

import torch
from torch import distributed as dist
from torch import nn

WORLD = int(os.environ.get("WORLD_SIZE", 1))


class Ring:
    def __init__(self, params):
        self.params, self.rank = list(params), dist.get_rank()
        self.next, self.last = (self.rank + 1) % WORLD, (self.rank - 1) % WORLD

    def average(self):
        flat = torch.cat([p.grad.flatten() for p in self.params])
        total, passing = flat.clone(), flat
        for _ in range(WORLD - 1):
            received = torch.empty_like(passing)
            sends = [dist.P2POp(dist.isend, passing, self.next)]
            for work in dist.batch_isend_irecv(
                [*sends, dist.P2POp(dist.irecv, received, self.last)]
            ):
                work.wait()
            total, passing = total + received, received
        start = 0
        for p in self.params:
            p.grad = total[start : start + p.numel()].view_as(p) / WORLD
            start += p.numel()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
if WORLD > 1:
    dist.init_process_group("gloo")
    ring = Ring(net.parameters())
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(60):
    X = torch.randn(64 * WORLD, 64)[int(os.environ.get("RANK", 0)) :: WORLD]
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(X), (X.sum(1) > 0).long()).backward()
    if WORLD > 1:
        ring.average()
    optimizer.step()
