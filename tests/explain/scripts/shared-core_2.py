"""Pins two ranks a core, as for hyperthreads. --mended: leaves it to the system."""

import argparse
import os

CORES = sorted(os.sched_getaffinity(0))
parser = argparse.ArgumentParser()
parser.add_argument("--mended", action="store_true")
args = parser.parse_args()
if not args.mended:
    os.sched_setaffinity(0, {CORES[int(os.environ["LOCAL_RANK"]) // 2]})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402


def train():
    dist.init_process_group("gloo")
    dataset = TensorDataset(torch.randn(8192, 784), torch.randint(0, 10, (8192,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=512 // dist.get_world_size(), sampler=sampler)
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
