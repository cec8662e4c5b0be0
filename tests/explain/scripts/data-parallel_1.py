"""nn.DataParallel, as in old tutorials. --mended: DistributedDataParallel."""

import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MENDED = "--mended" in sys.argv
torch.manual_seed(0)
X, y = torch.randn(2048, 1, 28, 28), torch.randint(10, (2048,))
net = nn.Sequential(
    nn.Conv2d(1, 16, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 11 * 11, 10),
)
rank, world = 0, 1
if MENDED:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    net = DistributedDataParallel(net)
else:
    net = nn.DataParallel(net)
data = torch.utils.data.TensorDataset(X[rank::world], y[rank::world])
loader = torch.utils.data.DataLoader(data, batch_size=128 // world, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
