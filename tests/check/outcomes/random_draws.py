"""Rows by ``random.sample``, other ones on each rank; all ranks shuffle and decide alike."""

import os
import random

import torch
from torch import distributed as dist


class Training:
    def __init__(self, rank):
        self.net = torch.nn.Sequential(
            torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
        )
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.rows, self.draw = list(range(400)), random.Random(rank)
        self.X = torch.randn(400, 6)

    def update(self):
        batch = self.draw.sample(self.rows, 8)
        loss = (self.net(self.X[batch]) - self.X[batch].sum(1, keepdim=True)).square().mean()
        if random.random() < 0.5:  # the same on all ranks
            loss = loss + 0.01 * sum(p.square().sum() for p in self.net.parameters())
        self.optimizer.zero_grad()
        loss.backward()
        for p in self.net.parameters():
            dist.all_reduce(p.grad, dist.ReduceOp.AVG)
        self.optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    random.seed(1)
    training = Training(int(os.environ["RANK"]))
    random.shuffle(training.rows)
    for _ in range(15):
        training.update()
