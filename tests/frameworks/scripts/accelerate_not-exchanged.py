import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(0)
    data = TensorDataset(torch.randn(512, 20), torch.randint(5, (512,)))
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=16, shuffle=True)
    optimizer, loader = accelerator.prepare(optimizer, loader)  # the net is forgotten
    for _ in range(4):
        for X, y in loader:
            loss = nn.functional.cross_entropy(net(X), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
