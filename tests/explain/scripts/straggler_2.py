"""Texts sorted by length, the longer half on rank 1. --mended: dealt out in turn."""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]


def collate(batch):
    texts, labels = zip(*batch)
    return pad_sequence(texts, batch_first=True), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.conv = nn.Conv1d(64, 128, 5, padding=2)
        self.out = nn.Linear(128, 2)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        return self.out(F.relu(self.conv(x)).amax(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(0)
    lengths = sorted(torch.randint(10, 400, (2048,), generator=generator).tolist())
    texts = [(torch.randint(1000, (n,), generator=generator), n % 2) for n in lengths]
    size = len(texts) // world
    texts = texts[rank::world] if args.mended else texts[rank * size : (rank + 1) * size]
    loader = DataLoader(Reviews(texts), batch_size=64 // world, shuffle=True, collate_fn=collate)
    model = nn.parallel.DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for tokens, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(tokens), labels).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
