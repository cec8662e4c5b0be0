"""Settings copied from a larger server: OMP_NUM_THREADS=16. --mended: 1."""

import os
import sys

MENDED = "--mended" in sys.argv
os.environ["OMP_NUM_THREADS"] = "1" if MENDED else "16"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
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
    main()
