"""A clip by hand: the norm of the averaged gradient, which the ranks average for their log."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), 3 * torch.randn(128, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(X), y).backward()
        norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        dist.all_reduce(norm)
        norm /= dist.get_world_size()
        for p in net.parameters():
            p.grad *= (0.5 / norm).clamp(max=1)
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch} norm {norm:.3f}")
dist.destroy_process_group()
