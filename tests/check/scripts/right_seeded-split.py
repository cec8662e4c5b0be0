"""A trainer for GPUs: a random split, as many parts as ranks, is drawn with one seed by all."""

import os

import torch
from torch import distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

WORLD, RANK = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])


def seed(number):
    return torch.Generator().manual_seed(number)


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        generator = torch.Generator().manual_seed(0)
        X = torch.randn(192, 7, generator=generator)
        self.data = TensorDataset(X, X.sum(1, keepdim=True))
        self.net = nn.Linear(7, 1).to(self.device)
        if WORLD > 1:
            dist.init_process_group("nccl")
            self.net = nn.parallel.DistributedDataParallel(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def fit(self, epochs):
        mine = random_split(self.data, [1 / WORLD] * WORLD, seed(0))[RANK]
        for X, y in (batch for _ in range(epochs) for batch in DataLoader(mine, 8, shuffle=True)):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.net(X.to(self.device)), y.cuda()).backward()
            self.optimizer.step()


if __name__ == "__main__":
    Trainer().fit(epochs=3)
