"""Plain DDP, as in the first tutorial; a linear rate for a batch that grows with the ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main(epochs=2, batch_size=8):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(128, 20), torch.randn(128, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    net = DDP(nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01 * int(os.environ["WORLD_SIZE"]))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for X, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(X), y).backward()
            optimizer.step()
    if dist.get_rank() == 0:
        print("done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
