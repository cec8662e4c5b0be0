"""Images kept compressed on a slow disk, one reader. --mended: read into memory first."""

import argparse
import io
import time
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Folder(Dataset):
    def __init__(self, n, in_memory):
        self.files = []
        for i in range(n):
            buffer = io.BytesIO()
            torch.save(torch.randn(3, 24, 24), buffer)
            self.files.append((zlib.compress(buffer.getvalue(), 1), i % 10))
        self.cache = [self.read(i, 0.0) for i in range(n)] if in_memory else None

    def read(self, i, seek=0.002):
        time.sleep(seek)
        data, label = self.files[i]
        return torch.load(io.BytesIO(zlib.decompress(data))), label

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return self.cache[i] if self.cache else self.read(i)


class Trainer:
    def __init__(self, model, data, batch_size):
        self.model = nn.parallel.DistributedDataParallel(model)
        sampler = torch.utils.data.DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, batch_size, sampler=sampler)
        self.optimizer = optim.SGD(model.parameters(), lr=0.01)

    def run_batch(self, source, targets):
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(source), targets).backward()
        self.optimizer.step()

    def train(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for source, targets in self.loader:
                self.run_batch(source, targets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    Trainer(model, Folder(1024, args.mended), 64 // dist.get_world_size()).train(3)
    dist.destroy_process_group()
