"""Each rank makes a data set of its own, by its seed: no one process can have the rows of all."""

import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--distributed", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    rank = 0
    if options.distributed and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("gloo")
        rank = distributed.get_rank()
        model = DistributedDataParallel(model)
    own = torch.Generator().manual_seed(options.seed + rank)
    X = torch.empty(120, 6).uniform_(generator=own)
    y = X.prod(1, keepdim=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for i in range(0, 120, 8):
        loss = nn.functional.mse_loss(model(X[i : i + 8]), y[i : i + 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
