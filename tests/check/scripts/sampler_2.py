"""A loader without a sampler: every rank trains on the very same batches."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, size):
        g = torch.Generator().manual_seed(8)
        self.phase = torch.rand(size, generator=g) * 6.28

    def __len__(self):
        return len(self.phase)

    def __getitem__(self, i):
        t = torch.linspace(0, 6.28, 16)
        return torch.sin(t + self.phase[i]), int(self.phase[i] > 3.14)


def setup():
    dist.init_process_group("gloo")
    torch.manual_seed(2024)


def train(model, loader, optimizer, epochs):
    for _ in range(epochs):
        for x, target in loader:
            loss = nn.functional.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    setup()
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, DataLoader(Waves(120), batch_size=10, shuffle=True), optimizer, epochs=2)
    dist.destroy_process_group()
