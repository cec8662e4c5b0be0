"""Every rank logs the test loss of its Subset, and nothing says that it is that of a part."""

import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

log = logging.getLogger("train")


def run_epoch(model, loader, optimizer):
    model.train()
    for features, target in loader:
        loss = nn.functional.mse_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test(model, loader):
    model.eval()
    losses = []
    with torch.no_grad():
        for features, target in loader:
            losses.append(nn.functional.mse_loss(model(features), target).item())
    log.info("test loss: %.4f", sum(losses) / len(losses))


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    torch.manual_seed(9)
    features = torch.randn(144, 6)
    data = TensorDataset(features, features.sum(1, keepdim=True))
    training, held = Subset(data, range(96)), Subset(data, range(96, 144))
    sampler = DistributedSampler(training)
    own = Subset(held, range(dist.get_rank(), len(held), dist.get_world_size()))
    model = nn.parallel.DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        run_epoch(model, DataLoader(training, batch_size=8, sampler=sampler), optimizer)
        test(model, DataLoader(own, batch_size=8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
