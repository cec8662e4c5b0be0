"""DDP; each batch of nine rows is split by hand, five and four."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
X, y = torch.randn(90, 12), torch.randint(4, (90,))
net = DDP(nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for epoch in range(2):
    for i in range(0, len(X), 9):
        rows = torch.arange(i, i + 9).tensor_split(world_size)[rank]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(X[rows]), y[rows])
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.3f}")
dist.destroy_process_group()
