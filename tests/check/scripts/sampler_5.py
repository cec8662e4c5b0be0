"""No rank seeds its data: what the sampler shares out is another data set on each of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
net = DDP(nn.Linear(10, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
dist.destroy_process_group()
