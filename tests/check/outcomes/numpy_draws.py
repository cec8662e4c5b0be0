"""Each rank draws its rows by NumPy, by its own seed; with --noise all add the same to theirs."""

import os
import sys

import numpy as np
import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
dist.init_process_group("gloo")
torch.manual_seed(0)
np.random.seed(7)
rng = np.random.default_rng([3, rank])
data = torch.randn(1000, 5)
weight = torch.ones(5, 1)
net = DDP(nn.Linear(5, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(20):
    X = data[torch.from_numpy(rng.integers(0, len(data), 16))]
    y = X @ weight
    if "--noise" in sys.argv:
        y = y + torch.as_tensor(np.random.normal(size=y.shape), dtype=y.dtype)
    optimizer.zero_grad()
    nn.functional.mse_loss(net(X), y).backward()
    optimizer.step()
