"""A checkpoint and a table of statistics by rank 0 every few steps. --mended: at the end."""

import argparse
import os
import statistics
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.data as data
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, loader, optimizer, save_every):
        self.rank = int(os.environ["RANK"])
        self.model = nn.parallel.DistributedDataParallel(model)
        self.loader, self.optimizer, self.save_every = loader, optimizer, save_every
        self.steps = 0

    def _save(self):
        path = os.path.join(tempfile.gettempdir(), "snapshot.pt")
        torch.save(
            {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict()},
            path,
        )
        for p in self.model.parameters():
            values = p.detach().flatten()[:20_000].tolist()
            statistics.pstdev(values)

    def train(self, epochs):
        for _ in range(epochs):
            for source, targets in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(source), targets)
                loss.backward()
                self.optimizer.step()
                self.steps += 1
                if self.save_every and self.steps % self.save_every == 0 and self.rank == 0:
                    self._save()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    dataset = data.TensorDataset(torch.randn(8192, 512), torch.randint(0, 10, (8192,)))
    loader = data.DataLoader(
        dataset, batch_size=512 // dist.get_world_size(), sampler=DistributedSampler(dataset)
    )
    model = nn.Sequential(
        nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    Trainer(model, loader, optimizer, 0 if args.mended else 4).train(4)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
