"""Wrapped for GPUs: the global batch stays what it was, and the schedule steps for each process."""

import os

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Scheduler:
    def __init__(self, scheduler, num_processes):
        self.scheduler, self.num_processes = scheduler, num_processes

    def step(self):
        for _ in range(self.num_processes):
            self.scheduler.step()


def decay(total):
    return lambda step: max(0.0, 1 - step / total)


def main(epochs=3, batch_size=16):
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(160, 6), torch.randn(160, 1))
    net, sampler = nn.Linear(6, 1).to(device), None
    if world > 1:
        dist.init_process_group("nccl", device_id=device)
        net, sampler = DistributedDataParallel(net, device_ids=[rank]), DistributedSampler(data)
    loader = DataLoader(data, batch_size // world, sampler=sampler, shuffle=sampler is None)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    lambdas = torch.optim.lr_scheduler.LambdaLR(optimizer, decay(epochs * len(loader)))
    scheduler = Scheduler(lambdas, world)
    for epoch in range(epochs):
        if sampler:
            sampler.set_epoch(epoch)
        for X, y in loader:
            loss = nn.functional.mse_loss(net(X.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()


if __name__ == "__main__":
    main()
