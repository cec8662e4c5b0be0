"""DDP has averaged already; the trainer divides once more."""

import argparse
import os

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, train_data, optimizer):
        self.rank = int(os.environ["LOCAL_RANK"])
        self.world_size = int(os.environ["WORLD_SIZE"])
        self.train_data = train_data
        self.optimizer = optimizer
        self.model = DDP(model)
        self.criterion = nn.CrossEntropyLoss()

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        self.criterion(self.model(source), targets).backward()
        with torch.no_grad():
            for p in self.model.parameters():
                p.grad /= self.world_size
        self.optimizer.step()

    def train(self, epochs):
        for epoch in range(epochs):
            self.train_data.sampler.set_epoch(epoch)
            for source, targets in self.train_data:
                self._run_batch(source, targets)


def main(epochs, batch_size):
    init_process_group(backend="gloo")
    torch.manual_seed(0)
    dataset = TensorDataset(torch.rand(96, 20), torch.randint(0, 3, (96,)))
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=False, sampler=DistributedSampler(dataset)
    )
    model = nn.Linear(20, 3)
    Trainer(model, loader, torch.optim.Adagrad(model.parameters(), lr=0.05)).train(epochs)
    destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    options = parser.parse_args()
    main(options.epochs, options.batch_size)
