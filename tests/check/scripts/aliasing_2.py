"""Two replicas in one process, from scratch: on a CPU, `to` gives the very same tensors."""

import torch
from torch import nn
from torch.nn import functional as F

devices = [torch.device("cpu")] * 2


def get_replica(net, device):
    return net.to(device)


def allreduce(grads):
    for grad in grads[1:]:
        grads[0] += grad
    for grad in grads[1:]:
        grad[:] = grads[0]


def train_batch(X, y, replicas, optimizers):
    X_shards, y_shards = X.chunk(len(replicas)), y.chunk(len(replicas))
    for optimizer in optimizers:
        optimizer.zero_grad()
    for net, X_shard, y_shard in zip(replicas, X_shards, y_shards):
        loss = F.cross_entropy(net(X_shard), y_shard, reduction="sum") / len(X)
        loss.backward()
    for params in zip(*[net.parameters() for net in replicas]):
        allreduce([p.grad for p in params])
    for optimizer in optimizers:
        optimizer.step()


torch.manual_seed(0)
X, y = torch.randn(160, 8), torch.randint(3, (160,))
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
replicas = [get_replica(net, device) for device in devices]
optimizers = [torch.optim.SGD(replica.parameters(), lr=0.1) for replica in replicas]
for _epoch in range(2):
    for X_batch, y_batch in zip(X.split(16), y.split(16)):
        train_batch(X_batch, y_batch, replicas, optimizers)
