"""set_default_dtype(float64), left from a check of gradients. --mended: without."""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5)
        self.conv2 = nn.Conv2d(16, 24, 5)
        self.fc1 = nn.Linear(24 * 4 * 4, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc1(x.flatten(1))


def train(model, loader, optimizer):
    for data, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(torch.log_softmax(model(data), 1), target)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    if not parser.parse_args().mended:
        torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    dataset = TensorDataset(torch.randn(4096, 1, 28, 28), torch.randint(0, 10, (4096,)))
    loader = DataLoader(
        dataset, batch_size=128 // dist.get_world_size(), sampler=DistributedSampler(dataset)
    )
    model = nn.parallel.DistributedDataParallel(Net())
    for epoch in range(2):
        train(model, loader, optim.Adadelta(model.parameters()))
    dist.destroy_process_group()
