"""The schedule is as long as the whole data, in the steps of one process, and counts in these."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 10), torch.randint(3, (160,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = DDP(nn.Linear(10, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3 * len(data) // 8)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
        for _ in range(dist.get_world_size()):
            scheduler.step()
dist.destroy_process_group()
