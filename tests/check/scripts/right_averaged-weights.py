"""Weights are averaged after each step of plain SGD: the same as averaged gradients."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 5), torch.randint(3, (96,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = nn.Linear(5, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p in net.parameters():
                dist.all_reduce(p)
                p /= dist.get_world_size()
dist.destroy_process_group()
