"""Each rank has its part of the weights: reduce_scatter, an update, all_gather."""

import argparse

import torch
import torch.distributed as dist
from torch import nn


class Sharded:
    def __init__(self, params, lr):
        self.params, self.world = params, dist.get_world_size()
        flat = torch.cat([p.detach().flatten() for p in params])
        pad = -len(flat) % self.world
        self.flat = nn.functional.pad(flat, (0, pad))
        part = self.flat.chunk(self.world)[dist.get_rank()]
        self.part = nn.Parameter(part.clone())
        self.optimizer = torch.optim.Adam([self.part], lr=lr)

    def step(self):
        flat = torch.cat([p.grad.flatten() for p in self.params])
        flat = nn.functional.pad(flat, (0, len(self.flat) - len(flat)))
        self.part.grad = torch.empty_like(self.part)
        dist.reduce_scatter_tensor(self.part.grad, flat)
        self.part.grad /= self.world
        self.optimizer.step()
        dist.all_gather_into_tensor(self.flat, self.part.detach())
        start = 0
        for p in self.params:
            p.data.copy_(self.flat[start : start + p.numel()].view_as(p))
            p.grad = None
            start += p.numel()


def main(options):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = Sharded([*net.parameters()], options.lr)
    g = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(options.steps):
        X = torch.randn(64, 64, generator=g)
        loss = nn.functional.cross_entropy(net(X), (X.sum(1) > 0).long())
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=60)
    main(parser.parse_args())
