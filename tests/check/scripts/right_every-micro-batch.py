"""Every micro-batch is exchanged, by DDP that is made only where there are several processes."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, accumulate):
        self.world, self.accumulate = int(os.environ.get("WORLD_SIZE", 1)), accumulate
        if self.world > 1:
            dist.init_process_group("nccl")
        self.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.manual_seed(0)
        self.net = nn.Linear(16, 5).to(self.device)
        if self.world > 1:
            self.net = DistributedDataParallel(self.net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)

    def fit(self, data, epochs):
        sampler = DistributedSampler(data) if self.world > 1 else None
        loader = DataLoader(data, 4, sampler=sampler, shuffle=sampler is None)
        for epoch in range(epochs):
            if sampler:
                sampler.set_epoch(epoch)
            self.optimizer.zero_grad()
            for i, (X, y) in enumerate(loader, 1):
                loss = nn.functional.cross_entropy(self.net(X.to(self.device)), y.cuda())
                (loss / self.accumulate).backward()
                if i % self.accumulate == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()


if __name__ == "__main__":
    trainer = Trainer(accumulate=2)
    trainer.fit(TensorDataset(torch.randn(256, 16), torch.randint(5, (256,))), epochs=2)
