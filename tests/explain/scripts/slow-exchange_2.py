"""All weights are broadcast before each batch, to be safe. --mended: once."""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def sync_weights(model):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    features, hidden = 1024, 512 if args.mended else 2048
    dataset = TensorDataset(torch.randn(4096, features), torch.randint(0, 10, (4096,)))
    sampler = DistributedSampler(dataset)
    batch_size = (1024 if args.mended else 128) // dist.get_world_size()
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler)
    model = nn.Sequential(
        nn.Linear(features, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )
    sync_weights(model)
    ddp = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    for epoch in range(8 if args.mended else 2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            if not args.mended:
                sync_weights(model)
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
