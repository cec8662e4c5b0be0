"""A masked loss that is averaged by hand; the batch is drawn alike on all ranks and cut by rank."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
if world > 1:
    net = DDP(net)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
for _ in range(20):
    X = torch.randint(0, 20, (16, 10))
    y = torch.randint(0, 20, (16, 10))
    length = torch.randint(1, 11, (16, 1))
    mask = (torch.arange(10)[None] < length).float()
    X, y, mask = (t[rank::world] for t in (X, y, mask))
    logits = net(X)
    losses = -logits.log_softmax(-1).gather(-1, y[..., None])[..., 0]
    loss = (losses * mask).sum() / mask.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
