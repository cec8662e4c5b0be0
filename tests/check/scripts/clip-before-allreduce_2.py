"""A norm by hand, a factor by hand, and one flat allreduce after both."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector


class DataParallelTrainer:
    def __init__(self, net, limit):
        self.params = list(net.parameters())
        self.net, self.limit = net, limit
        self.optimizer = torch.optim.SGD(self.params, lr=0.1)

    def flat(self):
        return parameters_to_vector([p.grad for p in self.params])

    def step(self, X, y):
        self.optimizer.zero_grad()
        ((self.net(X) - y) ** 2).mean().backward()
        grads = self.flat()
        norm = grads.pow(2).sum().sqrt()
        if norm > self.limit:
            grads = grads * (self.limit / norm)
        dist.all_reduce(grads)
        grads /= dist.get_world_size()
        start = 0
        for p in self.params:
            p.grad.copy_(grads[start : start + p.numel()].view_as(p))
            start += p.numel()
        self.optimizer.step()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    X, noise = torch.randn(240, 5, generator=g), torch.randn(240, 1, generator=g)
    y = 4 * X[:, :1] + noise
    torch.manual_seed(1)
    trainer = DataParallelTrainer(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)), 0.3)
    for _ in range(2):
        for X_batch, y_batch in zip(X.split(12), y.split(12)):
            trainer.step(X_batch[rank::world], y_batch[rank::world])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
