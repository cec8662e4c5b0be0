import ignite.distributed as idist
import torch
from ignite.engine import Engine
from torch import nn
from torch.utils.data import TensorDataset


def training(local_rank):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(512, 20), torch.randint(5, (512,)))
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    loader = idist.auto_dataloader(data, batch_size=32, shuffle=False)
    net = idist.auto_model(net)
    optimizer = idist.auto_optim(torch.optim.SGD(net.parameters(), lr=0.1))

    def update(engine, batch):
        X, y = batch
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(X), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    Engine(update).run(loader, max_epochs=4)


if __name__ == "__main__":
    with idist.Parallel(backend="gloo") as parallel:
        parallel.run(training)
