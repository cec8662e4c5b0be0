"""Four micro-batches an update, each with a mean of its own, and their gradients are added."""

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 4

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 16), torch.randint(5, (256,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, 4, sampler=sampler)
net = DistributedDataParallel(nn.Linear(16, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for i, (X, y) in enumerate(loader):
        last = (i + 1) % ACCUMULATE == 0
        with contextlib.nullcontext() if last else net.no_sync():
            F.cross_entropy(net(X), y).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
dist.destroy_process_group()
