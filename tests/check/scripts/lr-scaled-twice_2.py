"""A warm-up that ends at world_size times a rate that has been scaled before."""

import torch
from torch import distributed as dist
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

BASE_LR, WARM_UP, STEPS, ROWS = 0.02, 4, 24, 8


def batches(rank, world_size):
    g = torch.Generator().manual_seed(5)
    for _ in range(STEPS):
        X = torch.randn(ROWS * world_size, 6, generator=g)
        y = X.sum(1, keepdim=True)
        yield X[rank::world_size], y[rank::world_size]


def train():
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42)
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=BASE_LR * size)
    schedule = LambdaLR(optimizer, lambda step: 1 + (size - 1) * min(1, step / WARM_UP))
    criterion = nn.MSELoss()
    for X, y in batches(rank, size):
        optimizer.zero_grad()
        criterion(net(X), y).backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(size)
        optimizer.step()
        schedule.step()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
