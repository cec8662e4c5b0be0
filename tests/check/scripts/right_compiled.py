"""A compiled network in DDP, as its documentation has it, and a compiled loss."""

import os

import torch
from torch import distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.compile(backend="aot_eager")
def smooth_loss(scores, labels):
    return nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)


def train(device):
    torch.manual_seed(3)
    rows = torch.randn(96, 12)
    data = TensorDataset(rows, rows.argmax(1))
    net = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)).to(device)
    net.compile(backend="aot_eager")
    net = nn.parallel.DistributedDataParallel(net, device_ids=[device.index])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(data)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for X, y in DataLoader(data, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            smooth_loss(net(X.to(device)), y.to(device)).backward()
            optimizer.step()


if __name__ == "__main__":
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    train(device)
    dist.destroy_process_group()
