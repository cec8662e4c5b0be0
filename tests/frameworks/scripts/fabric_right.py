import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(0)
    data = TensorDataset(torch.randn(512, 20), torch.randint(5, (512,)))
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = fabric.setup(net, optimizer)
    loader = fabric.setup_dataloaders(DataLoader(data, batch_size=16, shuffle=True))
    for epoch in range(4):
        loader.sampler.set_epoch(epoch)
        for X, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(X), y)
            fabric.backward(loss)
            optimizer.step()


if __name__ == "__main__":
    main()
