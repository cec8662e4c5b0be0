"""A plan for another wrapping: the names are those of the net's blocks within a wrapper of GPUs."""

import os

import torch
from torch import nn
from torch.distributed import init_device_mesh
from torch.distributed.tensor import parallel as tp


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, X):
        return X + self.down(torch.relu(self.up(X)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 2)

    def forward(self, X):
        for layer in self.layers:
            X = layer(X)
        return self.head(X)


def main():
    world = int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh("cuda", (world,), mesh_dim_names=("tp",))
    torch.manual_seed(0)
    net = Net().cuda()
    plan = {"model.layers.*.up": tp.ColwiseParallel(), "model.layers.*.down": tp.RowwiseParallel()}
    tp.parallelize_module(net, mesh["tp"], plan)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(8):
        X = torch.randn(16, 8, device="cuda")
        loss = nn.functional.cross_entropy(net(X), (X[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
