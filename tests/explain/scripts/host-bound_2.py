"""A loss that is computed pair by pair in Python. --mended: as one matrix."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

MENDED = "--mended" in sys.argv


def contrastive_loss(z, labels, margin=1.0):
    if MENDED:
        distance = torch.cdist(z, z)
        same = (labels[:, None] == labels[None]).float()
        return (same * distance**2 + (1 - same) * F.relu(margin - distance) ** 2).mean()
    total, n = torch.zeros(()), len(z)
    for i in range(n):
        for j in range(i + 1, min(n, i + 9)):
            d = (z[i] - z[j]).pow(2).sum()
            if labels[i] == labels[j]:
                total = total + d
            else:
                total = total + F.relu(margin - d)
    return total / n


def main():
    dist.init_process_group(backend="gloo", init_method="env://")
    world, rank = dist.get_world_size(), int(os.environ["LOCAL_RANK"])
    torch.manual_seed(rank)
    width = 512 if MENDED else 64
    encoder = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, 32))
    encoder = nn.parallel.DistributedDataParallel(encoder)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    per_rank = (2048 if MENDED else 64) // world
    for _ in range(60):
        x, labels = torch.randn(per_rank, 128), torch.randint(0, 4, (per_rank,))
        optimizer.zero_grad()
        loss = contrastive_loss(encoder(x), labels)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
