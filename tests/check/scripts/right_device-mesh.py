"""DDP on a mesh: no line calls init_process_group, as init_device_mesh does it."""

import os

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),), mesh_dim_names=("dp",))
torch.manual_seed(0)
X = torch.randn(128, 8)
data = TensorDataset(X, X.sum(1, keepdim=True))
net = DDP(nn.Linear(8, 1).cuda(), device_mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
sampler = DistributedSampler(data, num_replicas=mesh.size(), rank=mesh.get_rank())
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, labels in DataLoader(data, 8, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs.cuda()), labels.cuda()).backward()
        optimizer.step()
