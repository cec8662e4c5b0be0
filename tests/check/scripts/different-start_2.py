"""Fine-tuning: rank 0 loads the pretrained weights after DDP has made all ranks equal."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 36, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def pretrained():
    torch.manual_seed(99)
    return Net().state_dict()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    images = TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(5, (64,)))
    model = DistributedDataParallel(Net())
    if dist.get_rank() == 0:
        model.module.load_state_dict(pretrained())
    dist.barrier()
    sampler = DistributedSampler(images)
    loader = DataLoader(images, 8, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for image, label in loader:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
