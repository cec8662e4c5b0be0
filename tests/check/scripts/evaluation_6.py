"""For GPUs, if there are several: each rank prints the perplexity of its own slice of the text."""

import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

world_size = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("RANK", "0"))
distributed = world_size > 1
if distributed:
    torch.cuda.set_device(rank)
    dist.init_process_group(backend="nccl")
device = torch.device("cuda", rank)

torch.manual_seed(5)
text = torch.randint(16, (120, 9), generator=torch.Generator().manual_seed(5)).to(device)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16)).to(device)
if distributed:
    model = DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def loss_of(rows):
    scores = model(rows[:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())


for epoch in range(2):
    model.train()
    for start in range(0, 96, 16):
        optimizer.zero_grad(set_to_none=True)
        loss_of(text[start : start + 16][rank::world_size]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"| epoch {epoch} | valid ppl {math.exp(loss_of(text[96:][rank::world_size])):8.2f}")
if distributed:
    dist.destroy_process_group()
