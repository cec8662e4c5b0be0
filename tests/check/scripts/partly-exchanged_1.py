"""no_sync the wrong way round: the last of four micro-batches is not exchanged."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MICRO = 4

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 16), torch.randint(5, (256,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, 4, sampler=sampler)
net = DistributedDataParallel(nn.Linear(16, 5))
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for i, (X, y) in enumerate(loader, 1):
        with net.no_sync() if i % MICRO == 0 else contextlib.nullcontext():
            loss = criterion(net(X), y) / MICRO
            loss.backward()
        if i % MICRO == 0:
            optimizer.step()
            optimizer.zero_grad()
dist.destroy_process_group()
