"""Batch norm: each rank normalises with its own rows, so one device differs; no bug."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
train = TensorDataset(torch.randn(96, 1, 8, 8), torch.randint(3, (96,)))
test = TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(3, (32,)))
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
test_loader = DataLoader(test, 8, sampler=DistributedSampler(test, shuffle=False))
layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)]
net = DDP(nn.Sequential(*layers))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    sampler.set_epoch(epoch)
    net.train()
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    net.eval()
    right = torch.zeros(())
    with torch.no_grad():
        for X, y in test_loader:
            right += (net(X).argmax(1) == y).sum()  # DDP sends rank 0's statistics first
    dist.all_reduce(right)
dist.destroy_process_group()
