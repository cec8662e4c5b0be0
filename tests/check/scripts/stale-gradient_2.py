"""The exchange of one step is hidden behind the next one: it comes a step late."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Overlapped:
    """Averages gradients while the next batch is computed."""

    def __init__(self, params):
        self.params, self.pending = list(params), None

    def exchange(self):
        sent = torch.cat([p.grad.flatten() for p in self.params])
        work = dist.all_reduce(sent, async_op=True)
        arrived, self.pending = self.pending, (work, sent)
        if arrived is None:
            return False
        arrived[0].wait()
        averaged = arrived[1] / dist.get_world_size()
        parts = averaged.split([p.numel() for p in self.params])
        for p, part in zip(self.params, parts):
            p.grad = part.view_as(p).clone()
        return True


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(144, 9), torch.randint(4, (144,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    net = nn.Sequential(nn.Linear(9, 20), nn.ReLU(), nn.Linear(20, 4))
    optimizer, criterion = torch.optim.SGD(net.parameters(), lr=0.1), nn.CrossEntropyLoss()
    overlapped = Overlapped(net.parameters())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for X, y in loader:
            optimizer.zero_grad()
            criterion(net(X), y).backward()
            if overlapped.exchange():
                optimizer.step()
    overlapped.pending[0].wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
