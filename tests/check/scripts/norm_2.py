"""A trainer for GPUs takes the norm before the exchange, and scales what it gets by that."""

import os

import torch
import torch.distributed as dist
from torch import nn

WORLD = int(os.environ.get("WORLD_SIZE", 1))
RANK = int(os.environ.get("LOCAL_RANK", 0))


class Trainer:
    def __init__(self, net, max_norm):
        self.device = torch.device("cuda", RANK)
        self.net, self.max_norm = net.to(self.device), max_norm
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)

    def gradient_norm(self):
        return torch.stack([p.grad.norm() for p in self.net.parameters()]).norm()

    def step(self, X, y):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.net(X), y).backward()
        norm = self.gradient_norm()
        if WORLD > 1:
            for p in self.net.parameters():
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        for p in self.net.parameters():
            p.grad *= torch.clamp(self.max_norm / norm, max=1.0)
        self.optimizer.step()


def main():
    if WORLD > 1:
        torch.cuda.set_device(RANK)
        dist.init_process_group("nccl")
    torch.manual_seed(3)
    trainer = Trainer(nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 4)), 0.1)
    X, y = torch.randn(24, 16, 6), torch.randint(4, (24, 16))
    for images, labels in zip(X, y):
        trainer.step(images[RANK::WORLD].to(trainer.device), labels[RANK::WORLD].cuda())
    if WORLD > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
