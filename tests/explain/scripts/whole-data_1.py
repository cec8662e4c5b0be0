"""DDP with a plain shuffled loader: each rank goes through all data. --mended: a sampler."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
world = dist.get_world_size()
data = TensorDataset(torch.randn(2048, 1, 28, 28), torch.randint(10, (2048,)))
if "--mended" in sys.argv:
    loader = DataLoader(data, batch_size=64, sampler=DistributedSampler(data))
else:
    loader = DataLoader(data, batch_size=64, shuffle=True)
net = DDP(
    nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 11 * 11, 10),
    )
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for X, y in loader:
        loss = nn.functional.cross_entropy(net(X), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
