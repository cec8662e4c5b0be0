"""Each rank logs the loss on its own validation rows, with its rank; rank 0 logs the training's."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn

rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if world_size > 1:
    dist.init_process_group("gloo")


class Trainer:
    def __init__(self):
        torch.manual_seed(6)
        x = torch.randn(128, 5)
        self.train, self.valid = x[:96], x[96:][rank::world_size]
        self.model = nn.Linear(5, 5)
        if world_size > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            return nn.functional.mse_loss(self.model(self.valid), self.valid).item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for start in range(0, 96, 16):
                x = self.train[start : start + 16][rank::world_size]
                loss = nn.functional.mse_loss(self.model(x), x)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"[rank {rank}] epoch {epoch}: val loss {self.evaluate():.4f}")
            if rank == 0:
                print(f"epoch {epoch}: train loss {loss.item():.4f}")


Trainer().fit(2)
if world_size > 1:
    dist.destroy_process_group()
