"""The backbone is wrapped by DDP; the new head beside it is not."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def backbone():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    features, head = DistributedDataParallel(backbone()), nn.Linear(16, 4)
    parameters = [*features.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    dataset = TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(4, (64,)))
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(head(features(images)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
