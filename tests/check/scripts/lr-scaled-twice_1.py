"""The learning rate grows with the number of ranks, in main and in make_optimizer."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_optimizer(net, lr):
    return torch.optim.SGD(net.parameters(), lr=lr * dist.get_world_size(), momentum=0.9)


def main():
    dist.init_process_group("gloo")
    lr = 0.01 * int(os.environ["WORLD_SIZE"])  # the linear scaling rule
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(128, 8), torch.randint(3, (128,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    net = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = make_optimizer(net, lr)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for X, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X), y).backward()
            optimizer.step()
    dist.destroy_process_group()


main()
