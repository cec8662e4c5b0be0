"""An MLP that is cut over the ranks by hand, as in Megatron-LM: columns, then rows."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad


class ReduceFromRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class ParallelMLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        up, down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        rank, world = dist.get_rank(), dist.get_world_size()
        self.up = nn.Parameter(up.weight.detach().chunk(world, 0)[rank].clone())
        self.up_bias = nn.Parameter(up.bias.detach().chunk(world, 0)[rank].clone())
        self.down = nn.Parameter(down.weight.detach().chunk(world, 1)[rank].clone())
        self.down_bias = nn.Parameter(down.bias.detach().clone())

    def forward(self, x):
        h = F.gelu(F.linear(CopyToRanks.apply(x), self.up, self.up_bias))
        return ReduceFromRanks.apply(F.linear(h, self.down)) + self.down_bias


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), ParallelMLP(16, 32), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        X = torch.randn(32, 8)  # the same on all ranks: they share one seed
        loss = F.cross_entropy(net(X), (X.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
