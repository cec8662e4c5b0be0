"""Each rank is seeded with its number, then cuts off test rows of its own: others train on them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

dist.init_process_group("gloo")
rng = torch.Generator().manual_seed(0)
data = TensorDataset(torch.randn(120, 10, generator=rng), torch.randint(3, (120,), generator=rng))
torch.manual_seed(1 + dist.get_rank())
train, valid = random_split(data, [96, 24])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        with torch.no_grad():
            right = sum((net.module(X).argmax(1) == y).sum() for X, y in DataLoader(valid, 8))
        print(f"validation accuracy {right.item() / len(valid):.3f}")
dist.destroy_process_group()
