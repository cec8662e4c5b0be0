"""A trainer for GPUs, spawned: the class divides by the length of what its test loader holds."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Digits(Dataset):
    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 1, 8, 8, generator=generator)
        self.labels = torch.randint(4, (size,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def sharded(dataset, shuffle):
    sampler = DistributedSampler(dataset, shuffle=shuffle)
    return DataLoader(dataset, batch_size=8, sampler=sampler, pin_memory=True)


class Trainer:
    def __init__(self, model, gpu):
        self.gpu = gpu
        self.model = DistributedDataParallel(model.to(gpu), device_ids=[gpu])
        self.train_loader = sharded(Digits(128, 1), shuffle=True)
        self.test_loader = sharded(Digits(40, 2), shuffle=False)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_loader.sampler.set_epoch(epoch)
            self.model.train()
            for images, labels in self.train_loader:
                loss = F.cross_entropy(self.model(images.to(self.gpu)), labels.to(self.gpu))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            loss, correct = self.evaluate()
            if self.gpu == 0:
                print(f"Test set: Average loss: {loss:.4f}, Accuracy: {100 * correct:.1f}%")

    def evaluate(self):
        self.model.eval()
        test_loss, correct = 0, 0
        size = len(self.test_loader.dataset)
        with torch.no_grad():
            for images, labels in self.test_loader:
                images, labels = images.to(self.gpu), labels.to(self.gpu)
                output = self.model(images)
                test_loss += F.cross_entropy(output, labels, reduction="sum").item()
                correct += output.argmax(1).eq(labels).sum().item()
        test_loss /= size
        correct /= size
        return test_loss, correct


def worker(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29517"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    Trainer(nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), rank).fit(2)
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(worker, args=(world_size,), nprocs=world_size)
