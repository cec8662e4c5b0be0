"""A language model for GPUs that synchronizes the first of three micro-batches, not the last."""

import os

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = int(os.environ.get("WORLD_SIZE", 1)) > 1
gradient_accumulation_steps = 3
seed_offset, world_size, device = 0, 1, "cuda:0"
if ddp:
    init_process_group(backend="nccl")
    seed_offset, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(30, 12), nn.Linear(12, 30)

    def forward(self, words, targets):
        scores = self.head(self.embedding(words))
        return scores, nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


text = torch.arange(4000).mul(7).remainder(29)


def get_batch():
    starts = torch.randint(3900, (8,))
    rows = torch.stack([text[i : i + 9] for i in starts]).to(device)
    return rows[:, :-1], rows[:, 1:]


torch.manual_seed(1)
model = Model().to(device)
if ddp:
    model = DDP(model, device_ids=[device])
torch.manual_seed(1337 + seed_offset)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(16):
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == 0
        _, loss = model(*get_batch())
        (loss / gradient_accumulation_steps).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
if ddp:
    destroy_process_group()
