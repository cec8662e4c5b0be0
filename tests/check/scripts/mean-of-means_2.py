"""A tagger on sentences of several lengths: padding is ignored, the loss is a mean over words."""

import torch
from torch import distributed, nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

PAD = 0


class Sentences(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        lengths = torch.randint(2, 13, (n,), generator=g)
        self.words = [torch.randint(1, 50, (int(m),), generator=g) for m in lengths]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i], self.words[i] % 5 + 1


def collate(pairs):
    words, tags = zip(*pairs)
    pad = nn.utils.rnn.pad_sequence
    return pad(words, True, PAD), pad(tags, True, PAD)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8, padding_idx=PAD)
        self.out = nn.Linear(8, 6)

    def forward(self, words):
        return self.out(self.embedding(words))


def main():
    distributed.init_process_group(backend="gloo")
    torch.manual_seed(1)
    data = Sentences(128)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, collate_fn=collate)
    model = DistributedDataParallel(Tagger())
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    opt = optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for words, tags in loader:
            opt.zero_grad()
            scores = model(words)
            loss = criterion(scores.flatten(0, 1), tags.flatten())
            loss.backward()
            opt.step()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
