"""Processes of mp.spawn that exchange by hand, one micro-batch too early."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


class Worker:
    micro_batches = 2

    def __init__(self, rank, world_size):
        torch.manual_seed(7)
        self.rank, self.world_size = rank, world_size
        self.net = nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Linear(10, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def average(self):
        for parameter in self.net.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.world_size

    def update(self, X, y):
        self.optimizer.zero_grad()
        parts = zip(X.chunk(self.micro_batches), y.chunk(self.micro_batches))
        for i, (images, labels) in enumerate(parts):
            if i == self.micro_batches - 1:
                self.average()
            loss = nn.functional.cross_entropy(self.net(images), labels)
            (loss / self.micro_batches).backward()
        self.optimizer.step()


def run(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    worker = Worker(rank, world_size)
    X, y = torch.randn(320, 8), torch.randint(2, (320,))
    for rows in torch.arange(320).chunk(20):
        mine = rows.chunk(world_size)[rank]
        worker.update(X[mine], y[mine])
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("localhost", 0))
        os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(s.getsockname()[1])}
    world_size = int(sys.argv[1]) if sys.argv[1:] else 2
    mp.spawn(run, args=(world_size,), nprocs=world_size)
