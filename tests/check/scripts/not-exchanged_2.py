"""The average is computed, and bound to a name that nobody reads."""

import torch
from torch import distributed as dist
from torch import nn


def average_gradients(model, size):
    for param in model.parameters():
        grad = param.grad.clone()
        dist.all_reduce(grad, op=dist.ReduceOp.SUM)
        grad = grad / size


def partition(rank, size):
    g = torch.Generator().manual_seed(11)
    X = torch.rand(160, 7, generator=g)
    order = torch.randperm(160, generator=g).tensor_split(size)[rank]
    return X[order], (X[order].sum(1) > 3.5).long()


def run(rank, size):
    torch.manual_seed(1234)
    X, y = partition(rank, size)
    model = nn.Sequential(nn.Linear(7, 9), nn.Sigmoid(), nn.Linear(9, 2), nn.LogSoftmax(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    for epoch in range(3):
        total = 0.0
        for i in range(0, len(X), 10):
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(model(X[i : i + 10]), y[i : i + 10])
            total += loss.item()
            loss.backward()
            average_gradients(model, size)
            optimizer.step()
        print("Rank", rank, "epoch", epoch, total)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
