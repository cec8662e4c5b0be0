"""Only the matrices are averaged; each rank keeps its own biases."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
weights = [p for p in net.parameters() if p.dim() > 1]
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        for p in weights:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        optimizer.step()
dist.destroy_process_group()
