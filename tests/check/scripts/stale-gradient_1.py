"""The last batch has one row. The rank without a row sends the gradient of the batch before."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
X, y = torch.randn(41, 10), torch.randint(3, (41,))
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for _epoch in range(4):
    for X_batch, y_batch in zip(X.split(8), y.split(8)):
        X_shards, y_shards = X_batch.chunk(world_size), y_batch.chunk(world_size)
        if rank < len(X_shards):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(X_shards[rank]), y_shards[rank], reduction="sum")
            (loss / len(X_batch)).backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
dist.destroy_process_group()
