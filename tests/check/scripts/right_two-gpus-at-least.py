"""In the style of PyTorch's examples: it ends at once where it sees fewer than two GPUs."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

if torch.cuda.device_count() < 2:
    print("Unable to locate sufficient 2 gpus to run this example. Exiting.")
    sys.exit()

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group(backend="nccl", device_id=torch.device(f"cuda:{rank}"))
torch.manual_seed(7)
net = DDP(nn.Linear(6, 3).to(rank), device_ids=[rank])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
X = torch.randn(160, 6)
data = TensorDataset(X, X[:, :3].argmax(1))
for inputs, labels in DataLoader(data, batch_size=8, sampler=DistributedSampler(data)):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(inputs.to(rank)), labels.to(rank)).backward()
    optimizer.step()
dist.destroy_process_group()
