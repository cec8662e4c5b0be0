"""set_epoch in each epoch; the test rows are evaluated by rank 0 alone."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
train = TensorDataset(torch.randn(100, 10), torch.randint(3, (100,)))
test = TensorDataset(torch.randn(11, 10), torch.randint(3, (11,)))
sampler = DistributedSampler(train, shuffle=True)
loader = DataLoader(train, batch_size=10, sampler=sampler, num_workers=1)
net = DDP(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for epoch in range(3):
    sampler.set_epoch(epoch)
    net.train()
    for X, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        net.eval()
        with torch.no_grad():
            right = sum((net.module(X).argmax(1) == y).sum() for X, y in DataLoader(test, 4))
        print(f"test accuracy {right.item() / len(test):.3f}")
    dist.barrier()
dist.destroy_process_group()
