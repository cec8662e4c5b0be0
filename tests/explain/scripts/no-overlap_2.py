"""Accumulates over eight micro-batches and exchanges in each. --mended: no_sync()."""

import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=8)
parser.add_argument("--mended", action="store_true")
args = parser.parse_args()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(16384, 512), torch.randint(0, 10, (16384,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=128 // dist.get_world_size(), sampler=sampler)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(
            nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader, 1):
            last = i % args.accumulate == 0
            quiet = model.no_sync() if args.mended and not last else contextlib.nullcontext()
            with quiet:
                loss = nn.functional.cross_entropy(model(x), y) / args.accumulate
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
