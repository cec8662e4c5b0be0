"""Processes of mp.spawn; the largest of the ranks' norms before the exchange is taken for all."""

import argparse
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def clipped(params, norm, limit):
    factor = limit / norm.item()
    if factor < 1:
        torch._foreach_mul_([p.grad for p in params], factor)


def train(rank, world_size, port):
    dist.init_process_group(
        "gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=world_size
    )
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(9, 12), nn.GELU(), nn.Linear(12, 1))
    params = list(net.parameters())
    optimizer = torch.optim.SGD(params, lr=0.02, momentum=0.9)
    X = torch.randn(320, 9)
    y = X.prod(1, keepdim=True) * 4
    for rows in torch.arange(320).split(16):
        mine = rows[rank::world_size]
        loss = (net(X[mine]) - y[mine]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in params])
        dist.all_reduce(norm, op=dist.ReduceOp.MAX)
        for p in params:
            dist.all_reduce(p.grad)
            p.grad.div_(world_size)
        clipped(params, norm, 0.3)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=2)
    world_size = parser.parse_args().world_size
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(world_size, port), nprocs=world_size)
