"""Each rank counts hits on its part of the test rows, and divides them by all test rows."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
train_data = TensorDataset(torch.randn(96, 10), torch.randint(3, (96,)))
test_data = TensorDataset(torch.randn(32, 10), torch.randint(3, (32,)))
sampler = DistributedSampler(train_data)
train_loader = DataLoader(train_data, batch_size=8, sampler=sampler)
test_loader = DataLoader(test_data, 8, sampler=DistributedSampler(test_data, shuffle=False))
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    net.train()
    for X, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for X, y in test_loader:
            hits += (net(X).argmax(1) == y).sum().item()
    print(f"epoch {epoch}: test accuracy {hits / len(test_data):.3f}")
dist.destroy_process_group()
