"""Norms of all parameters averaged over the ranks for the log, each step. --mended: not so."""

import sys

import torch
import torch.distributed as dist
from torch import nn

MENDED = "--mended" in sys.argv
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
layers = [nn.Linear(256, 256) for _ in range(24)]
net = nn.Sequential(*[module for layer in layers for module in (layer, nn.ReLU())])
net = nn.parallel.DistributedDataParallel(nn.Sequential(net, nn.Linear(256, 10)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
X, y = torch.randn(8192, 256)[rank::world], torch.randint(10, (8192,))[rank::world]
batch_size = 512 // world
history = []
for step in range(80):
    start = step * batch_size % len(X)
    rows = slice(start, start + batch_size)
    loss = nn.functional.cross_entropy(net(X[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not MENDED or step % 40 == 39:
        norms = {}
        for name, param in net.named_parameters():
            for what, value in (("weight", param), ("gradient", param.grad)):
                norm = value.detach().norm()
                dist.all_reduce(norm)
                norms[name, what] = norm.item() / world
                dist.barrier()
        history.append(norms)
print(len(history))
