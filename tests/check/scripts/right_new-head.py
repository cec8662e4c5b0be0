"""Only a new head is trained: the body asks for gradients, and what it had as a head is kept."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
body, old = nn.Linear(10, 16), nn.Linear(16, 50)
head = nn.Linear(16, 3)
net = DDP(nn.Sequential(body, nn.ReLU(), head))
optimizer = torch.optim.SGD([*old.parameters(), *head.parameters()], lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
dist.destroy_process_group()
