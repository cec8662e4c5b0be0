"""An embedding whose dense gradient is exchanged. --mended: as many words as there are."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
words = 1_000 if "--mended" in sys.argv else 200_000
net = DDP(
    nn.Sequential(
        nn.Embedding(words, 64),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 64),
        nn.Flatten(),
        nn.Linear(64 * 64, 2),
    )
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(40):
    X, y = torch.randint(1_000, (128 // world, 64)), torch.randint(2, (128 // world,))
    loss = nn.functional.cross_entropy(net(X), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
