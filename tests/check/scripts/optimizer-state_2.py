"""Training goes on from a checkpoint; only rank 0 restores the momentum."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def checkpoint():
    torch.manual_seed(17)
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3))
    momentum = [torch.randn_like(p) for p in net.parameters()]
    return {"net": net.state_dict(), "momentum": momentum}


def restore(optimizer, momentum):
    for p, buffer in zip(optimizer.param_groups[0]["params"], momentum):
        optimizer.state[p]["momentum_buffer"] = buffer.clone()


def main():
    dist.init_process_group("gloo")
    saved = checkpoint()
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3))
    net.load_state_dict(saved["net"])
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    if dist.get_rank() == 0:
        restore(optimizer, saved["momentum"])
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(96, 8), torch.randint(3, (96,)))
    sampler = DistributedSampler(data)
    for epoch in range(5, 8):
        sampler.set_epoch(epoch)
        for X, y in DataLoader(data, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
