"""Gradients averaged by hand, every rank on the same rows. --mended: each on its own."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn


def average_gradients(model):
    size = float(dist.get_world_size())
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    flat /= size
    for p, grad in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.grad.copy_(grad.view_as(p))


def run(rank, size, mended):
    torch.manual_seed(1234)
    inputs, targets = torch.randn(3072, 3, 24, 24), torch.randint(0, 10, (3072,))
    if mended:
        inputs, targets = inputs[rank::size], targets[rank::size]
    batch = 96 // size if mended else 96
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3),
        nn.ReLU(),
        nn.Conv2d(24, 24, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(384, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for epoch in range(2):
        epoch_loss = 0.0
        for data, target in zip(inputs.split(batch), targets.split(batch)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        print("Rank ", rank, ", epoch ", epoch, ": ", epoch_loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    run(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), args.mended)
    dist.destroy_process_group()
