"""Processes of mp.spawn: the last layer is replaced when the optimizer has been made."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def pretrained():
    return nn.ModuleDict({"body": nn.Linear(8, 16), "head": nn.Linear(16, 100)})


class Classifier(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, X):
        return self.layers["head"](self.layers["body"](X).relu())


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    layers = pretrained()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    layers["head"] = nn.Linear(16, 4)
    net = DDP(Classifier(layers))
    data = TensorDataset(torch.randn(160, 8), torch.randint(4, (160,)))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for X, y in DataLoader(data, 8, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("localhost", 0))
        os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(s.getsockname()[1])}
    world_size = torch.cuda.device_count()
    mp.spawn(main, args=(world_size,), nprocs=world_size)
