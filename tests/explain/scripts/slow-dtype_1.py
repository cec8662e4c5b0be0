"""NumPy's float64 goes all the way. --mended: float32."""

import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
rng = np.random.default_rng(0)
X = torch.from_numpy(rng.standard_normal((4096, 512)))
y = torch.from_numpy(rng.integers(10, size=4096))
net = nn.Sequential(
    nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)
).double()
if "--mended" in sys.argv:
    X, net = X.float(), net.float()
net = DDP(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
X, y = X[rank::world], y[rank::world]
for step in range(60):
    rows = torch.randint(len(X), (512 // world,))
    loss = nn.functional.cross_entropy(net(X[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
