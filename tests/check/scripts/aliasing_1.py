"""The list for all_gather holds one tensor several times: the last rank's gradient wins."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
world_size = dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        for p in net.parameters():
            gathered = [torch.empty_like(p.grad)] * world_size
            dist.all_gather(gathered, p.grad)
            p.grad = sum(gathered) / world_size
        optimizer.step()
dist.destroy_process_group()
