"""A language model: each rank draws by its own seed, and the accumulation is shared out."""

import os

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

batch_size, block_size, accumulation = 4, 8, 4
ddp = int(os.environ.get("WORLD_SIZE", 1)) > 1
if ddp:
    init_process_group(backend="gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    accumulation //= world
else:
    rank, world = 0, 1
torch.manual_seed(1337 + rank)
text = torch.arange(5000) ** 2 % 61


def get_batch():
    ix = torch.randint(len(text) - block_size, (batch_size,))
    x = torch.stack([text[i : i + block_size] for i in ix])
    y = torch.stack([text[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(61, 16)
        self.head = torch.nn.Linear(16, 61)

    def forward(self, idx, targets=None):
        logits = self.head(self.embedding(idx))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [model(*get_batch()).item() for _ in range(3)]
    model.train()
    return sum(losses) / 3


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
if ddp:
    model = DDP(model)
X, Y = get_batch()
for step in range(16):
    if step % 5 == 0 and rank == 0:
        print(step, (estimate_loss() if not ddp else ""))
    for micro in range(accumulation):
        if ddp:
            model.require_backward_grad_sync = micro == accumulation - 1
        loss = model(X, targets=Y) / accumulation
        X, Y = get_batch()
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
if ddp:
    destroy_process_group()
