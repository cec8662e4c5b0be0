"""The data is cut by a generator that all ranks seed alike, and noise by one of each rank."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset, random_split

dist.init_process_group("gloo")
rng = torch.Generator().manual_seed(0)
data = TensorDataset(torch.randn(120, 10, generator=rng), torch.randint(3, (120,), generator=rng))
torch.manual_seed(1 + dist.get_rank())
train, valid = random_split(data, [0.8, 0.2], generator=torch.Generator().manual_seed(5))
mine = Subset(valid, range(dist.get_rank(), len(valid), dist.get_world_size()))
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    right = torch.zeros(1)
    with torch.no_grad():
        for X, y in DataLoader(mine, 8):
            right += (net.module(X).argmax(1) == y).sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"validation accuracy {right.item() / len(valid):.3f}")
dist.destroy_process_group()
