"""A right script in which the optimizer calls the passes, as Lightning has it.

Its loader asks for workers. Under check there are none, which the rows would notice.
"""

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, get_worker_info


class Rows(TensorDataset):
    def __getitem__(self, i):
        assert get_worker_info() is None
        return super().__getitem__(i)


dist.init_process_group("gloo")
torch.manual_seed(0)
data = Rows(torch.randn(128, 10), torch.randint(3, (128,)))
sampler = DistributedSampler(data)
net = DistributedDataParallel(nn.Linear(10, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for X, y in DataLoader(data, 8, sampler=sampler, num_workers=2, prefetch_factor=4):

        def closure(X=X, y=y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(X), y)
            loss.backward()
            return loss

        optimizer.step(closure)
dist.destroy_process_group()
