"""Eleven test rows over the ranks: DistributedSampler repeats some, and they count twice."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def accuracy(net, loader):
    net.eval()
    right = torch.zeros(2)
    with torch.no_grad():
        for X, y in loader:
            right += torch.tensor([(net(X).argmax(1) == y).sum(), len(y)])
    dist.all_reduce(right)
    net.train()
    return (right[0] / right[1]).item()


dist.init_process_group("gloo")
torch.manual_seed(0)
train = TensorDataset(torch.randn(96, 10), torch.randint(3, (96,)))
test = TensorDataset(torch.randn(11, 10), torch.randint(3, (11,)))
sampler = DistributedSampler(train)
train_loader = DataLoader(train, batch_size=8, sampler=sampler)
test_loader = DataLoader(test, batch_size=4, sampler=DistributedSampler(test, shuffle=False))
net = DDP(nn.Linear(10, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    print(f"test accuracy {accuracy(net, test_loader):.3f}")
dist.destroy_process_group()
