"""FSDP2: the net's own parameters are cut, and PyTorch exchanges them; no group for one process."""

import argparse
import os

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard


def main(options):
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(options.seed)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
    rank = 0
    if world > 1:
        distributed.init_process_group("gloo")
        rank = distributed.get_rank()
        fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.lr)
    for _ in range(60):
        X = torch.randn(64 * world, 64)[rank::world]
        nn.functional.cross_entropy(net(X), (X.sum(1) > 0).long()).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
