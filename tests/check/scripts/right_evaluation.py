"""Evaluations that are shared out and put together, or that every rank or rank 0 does alone."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
world_size, folder = dist.get_world_size(), Path(__file__).parent
train_data = TensorDataset(torch.randn(144, 10), torch.randint(3, (144,)))
test_data = TensorDataset(torch.randn(32, 10), torch.randint(3, (32,)))
sampler = DistributedSampler(train_data)
train_loader = DataLoader(train_data, batch_size=8, sampler=sampler)
share_loader = DataLoader(test_data, 8, sampler=DistributedSampler(test_data, shuffle=False))
whole_loader = DataLoader(test_data, batch_size=8)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def hits(loader, model=net):
    net.eval()
    with torch.no_grad():
        return torch.stack([(model(X).argmax(1) == y).sum() for X, y in loader]).sum()


def by_sum():
    right = hits(share_loader)
    dist.all_reduce(right)
    return right.item() / len(test_data)


@torch.inference_mode()
def by_sum_in_inference_mode():
    net.eval()
    right = sum((net(X).argmax(1) == y).sum() for X, y in share_loader)
    dist.reduce(right, dst=0)
    return right.item() / len(test_data)


def by_gathered_tensors():
    own = hits(share_loader)
    every = [torch.empty_like(own) for _ in range(world_size)]
    dist.all_gather(every, own)
    return sum(every).item() / len(test_data)


def by_gathered_objects():
    every = [None] * world_size
    dist.all_gather_object(every, hits(share_loader).item())
    return sum(every) / len(test_data)


def by_files():
    torch.save(hits(share_loader), folder / f"hits-{dist.get_rank()}.pt")
    dist.barrier()
    return sum(torch.load(file).item() for file in folder.glob("hits-*")) / len(test_data)


def by_mean_of_equal_parts():
    mean = hits(share_loader) / len(share_loader.sampler)
    dist.all_reduce(mean)
    return mean.item() / world_size


def by_every_rank():
    return hits(whole_loader).item() / len(test_data)


def by_rank_0():
    return hits(whole_loader, net.module).item() / len(test_data) if dist.get_rank() == 0 else 0.0


ways = [by_sum, by_sum_in_inference_mode, by_gathered_tensors, by_gathered_objects]
ways += [by_files, by_mean_of_equal_parts, by_every_rank, by_rank_0]
for epoch, way in enumerate(ways):
    sampler.set_epoch(epoch)
    net.train()
    for _, (X, y) in zip(range(4), train_loader):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    accuracy = way()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: test accuracy {accuracy:.3f}")
dist.destroy_process_group()
