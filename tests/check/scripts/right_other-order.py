"""Each rank shuffles a contiguous half of its own: one process would take the rows otherwise."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 10), torch.randint(3, (128,)))
mine = Subset(data, torch.arange(128).tensor_split(world_size)[rank].tolist())
own = torch.Generator().manual_seed(rank)
loader = DataLoader(mine, batch_size=16 // world_size, shuffle=True, generator=own)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
dist.destroy_process_group()
