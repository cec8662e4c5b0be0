"""Every rank hears every rank's predictions after each batch. --mended: once at the end."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def gather_accuracy(outputs, labels, world_size):
    gathered = [None] * world_size
    dist.all_gather_object(gathered, (outputs.argmax(1).tolist(), labels.tolist()))
    right = total = 0
    for predictions, truth in gathered:
        right += sum(p == t for p, t in zip(predictions, truth))
        total += len(truth)
    return right / total


def train(mended):
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(4096, 784), torch.randint(0, 10, (4096,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=256 // world_size, sampler=sampler)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    ddp = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            outputs = ddp(images)
            loss = nn.functional.cross_entropy(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not mended:
                for _ in ("accuracy", "top 5", "recall"):
                    gather_accuracy(outputs, labels, world_size)
                dist.barrier()
        if rank == 0:
            print(epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    train("--mended" in sys.argv)
