"""Each rank evaluates its part of the test rows with statistics of its own batch norm."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
train = TensorDataset(torch.randn(96, 10), torch.randint(3, (96,)))
test = TensorDataset(torch.randn(32, 10), torch.randint(3, (32,)))
sampler = DistributedSampler(train)
train_loader = DataLoader(train, batch_size=8, sampler=sampler)
test_loader = DataLoader(test, batch_size=8, sampler=DistributedSampler(test, shuffle=False))
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    net.train()
    for X, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    net.eval()
    right = torch.zeros(())
    with torch.no_grad():
        for X, y in test_loader:
            right += (net.module(X).argmax(1) == y).sum()
    dist.all_reduce(right)
    print(f"epoch {epoch} test accuracy {right.item() / len(test):.3f}")
dist.destroy_process_group()
