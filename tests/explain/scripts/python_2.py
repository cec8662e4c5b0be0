"""Batches tokenised by threads in pure Python. --mended: tokenised before."""

import argparse
import queue
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORDS = [f"word{i}" for i in range(500)]


def tokenize(text, vocabulary):
    tokens = []
    for word in text.split(" "):
        key = "".join(c for c in word.lower() if c.isalnum())
        tokens.append(vocabulary.get(key, 0))
    return tokens


class Prefetcher:
    def __init__(self, texts, batch_size, threads):
        self.texts, self.batch_size = texts, batch_size
        self.vocabulary = {word: i for i, word in enumerate(WORDS)}
        self.queue = queue.Queue(64)
        for seed in range(threads):
            threading.Thread(target=self.work, args=(seed,), daemon=True).start()

    def work(self, seed):
        generator = torch.Generator().manual_seed(seed)
        while True:
            rows = torch.randint(len(self.texts), (4 * self.batch_size,), generator=generator)
            batch = [tokenize(self.texts[i], self.vocabulary) for i in rows.tolist()]
            self.queue.put(torch.tensor(batch[: self.batch_size]))

    def __iter__(self):
        while True:
            yield self.queue.get()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mended", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    batch = 64 // dist.get_world_size()
    texts = [" ".join(WORDS[(i * j) % 500] for j in range(64)) for i in range(256)]
    if args.mended:
        tokens = torch.randint(500, (4096, 64))
        batches = (tokens[torch.randint(4096, (batch,))] for _ in range(60))
    else:
        batches = Prefetcher(texts, batch, 2)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(
            nn.Embedding(500, 64),
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 256, 2),
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, X in enumerate(batches):
        optimizer.zero_grad()
        F.cross_entropy(model(X), torch.randint(2, (batch,))).backward()
        optimizer.step()
        if step == 60:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
