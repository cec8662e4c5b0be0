"""set_seed(42) on each rank: dropout hides the same units everywhere."""

import random

import numpy as np
import torch
from torch import distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Classifier(nn.Module):
    def __init__(self, hidden=24, p=0.5):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(12, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, 4)
        )

    def forward(self, x):
        return self.layers(x)


def main():
    dist.init_process_group("gloo")
    set_seed(42)
    dataset = TensorDataset(torch.randn(120, 12), torch.randint(4, (120,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=10, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(Classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        model.train()
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
