"""A trainer in processes of mp.spawn; the mean over unmasked words is by rank, or --right."""

import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, rank, options):
        self.rank, self.options = rank, options
        torch.manual_seed(0)
        net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
        self.net = DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.5, momentum=0.9)
        self.generator = torch.Generator().manual_seed(100 + rank)

    def batch(self):
        words = torch.randint(1, 20, (8, 12), generator=self.generator)
        length = torch.randint(2, 13, (8, 1), generator=self.generator)
        return words, words * 3 % 20, torch.arange(12)[None] < length

    def loss(self, scores, tags, mask):
        each = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten(), reduction="none")
        total = each[mask.flatten()].sum()
        if self.options.right:
            tokens = mask.sum().float()
            dist.all_reduce(tokens)
            return total * dist.get_world_size() / tokens
        return total / mask.sum()

    def train(self, steps):
        for _ in range(steps):
            words, tags, mask = self.batch()
            self.optimizer.zero_grad()
            self.loss(self.net(words), tags, mask).backward()
            self.optimizer.step()


def worker(rank, world_size, options):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(options.port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    Trainer(rank, options).train(options.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--right", action="store_true")
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("localhost", 0))
        options.port = s.getsockname()[1]
    mp.spawn(worker, args=(options.gpus, options), nprocs=options.gpus)
