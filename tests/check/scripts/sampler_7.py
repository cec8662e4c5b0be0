"""The whole network is compiled, DDP in it; every rank goes through all rows in its own order."""

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

X = torch.randn(128, 16, generator=torch.Generator().manual_seed(1))
LOADER = DataLoader(TensorDataset(X, (X.sum(1) > 0).long()), batch_size=8, shuffle=True)

if __name__ == "__main__":
    dist.init_process_group()
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2)))
    net = torch.compile(net, backend="aot_eager")
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step, (inputs, labels) in enumerate(LOADER):
        loss = nn.functional.cross_entropy(net(inputs), labels)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 10 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()
