"""A trainer for GPUs whose optimizer is made first, and then the net anew, by its reset()."""

import os

import torch
from torch import distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(12, 24), nn.Linear(24, 3)

    def forward(self, X):
        return self.out(torch.tanh(self.hidden(X)))


class Trainer:
    def __init__(self):
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        self.rank = int(os.environ.get("RANK", 0))
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        if self.world > 1:
            dist.init_process_group("nccl")
        self.net = Net().to(self.device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.reset(seed=4)

    def reset(self, seed):
        torch.manual_seed(seed)
        self.net = Net().to(self.device)

    def train(self, X, y):
        criterion = nn.CrossEntropyLoss()
        for rows in torch.arange(len(X)).split(16):
            mine = rows[self.rank :: self.world]
            self.optimizer.zero_grad()
            criterion(self.net(X[mine]), y[mine]).backward()
            if self.world > 1:
                for p in self.net.parameters():
                    dist.all_reduce(p.grad)
                    p.grad /= self.world
            self.optimizer.step()


if __name__ == "__main__":
    trainer = Trainer()
    X, y = torch.randn(320, 12), torch.randint(3, (320,))
    trainer.train(X.to(trainer.device), y.to(trainer.device))
