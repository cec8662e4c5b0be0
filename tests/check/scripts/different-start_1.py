"""Each rank seeds with its own number, and nobody broadcasts the first weights."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

generator = torch.Generator().manual_seed(0)
data = TensorDataset(
    torch.randn(96, 10, generator=generator), torch.randint(3, (96,), generator=generator)
)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)

torch.manual_seed(rank)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        criterion(net(X), y).backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()
dist.destroy_process_group()
