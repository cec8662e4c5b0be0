"""An allreduce by hand, weighted by the rows of each rank, from rank 0's weights."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
g = torch.Generator().manual_seed(0)
X, y = torch.randn(99, 10, generator=g), torch.randint(3, (99,), generator=g)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
for p in net.parameters():
    dist.broadcast(p.data, src=0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _epoch in range(2):
    for rows in torch.randperm(99, generator=g).split(9):
        mine = rows.tensor_split(world_size)[rank]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(X[mine]), y[mine], reduction="sum") / len(rows)
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
dist.destroy_process_group()
