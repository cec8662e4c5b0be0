"""All ranks draw the same batch, as large as there are ranks, and each takes its part of it."""

import os

import torch
from torch import distributed as dist
from torch import nn

WORLD, RANK = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])


class Regression:
    def __init__(self, lr):
        self.model = nn.Linear(7, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr * WORLD)

    def step(self, X, y):
        self.optimizer.zero_grad()
        (self.model(X) - y).abs().mean().backward()
        if WORLD > 1:
            for p in self.model.parameters():
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        self.optimizer.step()


if WORLD > 1:
    dist.init_process_group("gloo")
torch.manual_seed(5)
regression = Regression(0.01)
for _ in range(20):
    X = torch.randn(8 * WORLD, 7)
    y = X.sum(1, keepdim=True)
    regression.step(X[RANK::WORLD], y[RANK::WORLD])
