"""FSDP1, whose ranks hold parts of one flat parameter, or views of it, and rows of their own."""

import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

VIEWS = "--views" in sys.argv

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
if VIEWS:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net = FullyShardedDataParallel(net, use_orig_params=VIEWS, device_id=torch.device("cpu"))
if not VIEWS:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in DataLoader(data, 8, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
dist.destroy_process_group()
