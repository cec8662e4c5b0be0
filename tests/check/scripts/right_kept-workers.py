"""NumPy's float32, loading processes that are kept, and a script that counts its batches itself."""

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rows(Dataset):
    def __init__(self):
        self.X = np.random.default_rng(0).normal(size=(240, 10)).astype(np.float32)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return torch.from_numpy(self.X[i]), i % 3


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Rows()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler, num_workers=1, persistent_workers=True)
    net = nn.parallel.DistributedDataParallel(nn.Linear(10, 3).float())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        batches = iter(loader)
        for _ in range(len(loader)):
            X, y = next(batches)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X.float()), y).backward()
            optimizer.step()
    dist.destroy_process_group()
