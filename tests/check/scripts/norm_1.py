"""DDP has averaged the gradients, and the squares of their norms are summed over ranks again."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def clip(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    square = sum(grad.pow(2).sum() for grad in grads)
    dist.all_reduce(square)
    scale = max_norm / (square.sqrt() + 1e-6)
    if scale < 1:
        for grad in grads:
            grad.mul_(scale)


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
        clip(net.parameters(), 0.5)
        optimizer.step()
dist.destroy_process_group()
