"""An allreduce by hand that sums, and nobody divides."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def sum_gradients(model):
    for param in model.parameters():
        dist.all_reduce(param.grad, op=dist.ReduceOp.SUM)


def run():
    dist.init_process_group("gloo")
    torch.manual_seed(1234)
    data = TensorDataset(torch.randn(128, 10), torch.randn(128, 1))
    sampler = DistributedSampler(data, seed=7)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for data, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(data), target)
            loss.backward()
            sum_gradients(model)
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
