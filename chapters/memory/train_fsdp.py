"""Train a GPT on the bytes of a text, with all that a rank holds sharded (FSDP2):

    torchrun --standalone --nproc-per-node=4 train_fsdp.py --text book.txt --checkpoints gpt

It needs PyTorch and nothing of the course: copy it. The page chapters/memory/sharding says why its
steps have this order. To train something else, replace ``GPT`` and ``batch``. Told by SIGUSR1
that its time is nearly over, it saves after the step and ends with exit code 75: it goes on."""

import argparse
import os
import shutil
import signal
from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

NUMBERS = {"width": 64, "blocks": 2, "heads": 4, "tokens": 64, "batch-size": 16, "steps": 200,
         "save-every": 100, "seed": 0, "replicas": 1, "lr": 3e-3}


def parse_args(argv=None):
    """``batch_size`` is of all ranks; each of ``replicas`` groups shares out a copy (HSDP)."""
    parser = argparse.ArgumentParser()
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--text", required=True, help="a file that every rank can read")
    parser.add_argument("--checkpoints", help="a folder that all hosts see, to go on from")
    for name in "bf16", "recompute", "compile":
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(argv)


class Block(nn.Module):
    """Attention and an MLP, each after a norm and beside the identity."""

    def __init__(self, width, heads, recompute):
        super().__init__()
        self.heads, self.recompute = heads, recompute
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def both(self, X):
        parts = self.qkv(self.norm1(X)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        X = X + self.out(Y.transpose(1, 2).flatten(2))
        return X + self.down(F.gelu(self.up(self.norm2(X))))

    def forward(self, X):
        return checkpoint(self.both, X, use_reentrant=False) if self.recompute else self.both(X)


class GPT(nn.Module):
    """Scores of what follows each byte. The table of positions is a buffer, in no checkpoint."""

    def __init__(self, args):
        super().__init__()
        width = args.width
        self.emb, self.norm = nn.Embedding(256, width), nn.LayerNorm(width)
        blocks = [Block(width, args.heads, args.recompute) for _ in range(args.blocks)]
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(width, 256, bias=False)
        self.register_buffer("positions", torch.empty(args.tokens, width), persistent=False)

    def fill_positions(self):
        tokens, width = self.positions.shape
        angles = torch.outer(torch.arange(tokens), 10_000.0 ** -torch.linspace(0, 1, width // 2))
        self.positions.copy_(torch.cat((angles.sin(), angles.cos()), dim=1))

    def forward(self, X):
        return self.head(self.norm(self.blocks(self.emb(X) + self.positions)))


def sharded(args, device):
    """The network of which each rank holds a part, with the weights that rank 0 draws."""
    shape = args.replicas, dist.get_world_size() // args.replicas
    mesh = dist.init_device_mesh(device.type, shape, mesh_dim_names=("replicas", "shards"))
    types = (torch.bfloat16, torch.float32) if args.bf16 else ()  # gathered, and reduced
    options = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(*types)}
    with torch.device("meta"):  # shapes, no memory
        net = GPT(args)
    for block in net.blocks:
        if args.compile:  # recomputation is inside of it, sharding around it
            block.compile()
        fully_shard(block, **options)
    fully_shard(net, **options).to_empty(device=device)  # memory for this rank's part
    net.fill_positions()
    torch.manual_seed(args.seed)
    weights = GPT(args).state_dict() if dist.get_rank() == 0 else {}
    whole = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    states.set_model_state_dict(net, weights, options=whole)
    return net


def batch(text, args, step):
    """This rank's sequences and what follows, of a global batch that no number of ranks changes."""
    draw = torch.Generator().manual_seed(args.seed * 1_000_003 + step)
    starts = torch.randint(len(text) - args.tokens, (args.batch_size,), generator=draw)
    own = starts.chunk(dist.get_world_size())[dist.get_rank()]
    rows = torch.stack([text[i : i + args.tokens + 1] for i in own]).long()
    return rows[:, :-1], rows[:, 1:]


def state_of(net, optimizer):
    return dict(zip(("net", "optimizer"), states.get_state_dict(net, optimizer), strict=True))


def whole_ones(folder):
    """The checkpoints that are whole, the newest last: .metadata comes when all ranks are done."""
    return sorted(file.parent for file in Path(folder).glob("step-*/.metadata"))


def resume(args, net, optimizer):
    """Go on from the checkpoint that rank 0 finds; the number of steps that are done."""
    latest = [max(whole_ones(args.checkpoints), default=None) if args.checkpoints else None]
    dist.broadcast_object_list(latest)  # a name: each rank reads its part itself
    if latest[0] is None:
        return 0
    state = state_of(net, optimizer)
    dcp.load(state, checkpoint_id=latest[0])  # any number of ranks may have written it
    restored = {"model_state_dict": state["net"], "optim_state_dict": state["optimizer"]}
    states.set_state_dict(net, optimizer, **restored)
    return int(latest[0].name.removeprefix("step-"))


def written(writing, folder):
    """Wait for the checkpoint that is being written, and keep two."""
    if writing:
        writing.result()  # raises what went wrong
        for old in whole_ones(folder)[:-2] if dist.get_rank() == 0 else ():
            shutil.rmtree(old)


def train(args, device, warned=()):
    """Yields each step with the mean loss of its global batch, until a rank has been ``warned``."""
    text = torch.frombuffer(bytearray(Path(args.text).read_bytes()), dtype=torch.uint8)
    writers = dist.new_group(backend="gloo")  # checkpoints are written beside the next steps
    net, writing = sharded(args, device), None
    optimizer = torch.optim.AdamW(net.parameters(), args.lr)
    for step in range(resume(args, net, optimizer) + 1, args.steps + 1):
        X, y = (rows.to(device) for rows in batch(text, args, step))
        loss = F.cross_entropy(net(X).float().flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        sums = torch.stack((loss.detach() / dist.get_world_size(), loss.new_tensor(len(warned))))
        dist.all_reduce(sums)
        yield step, sums[0].item()
        if args.checkpoints and (sums[1] or step % args.save_every == 0):
            written(writing, args.checkpoints)
            folder = Path(args.checkpoints, f"step-{step:08}")
            state = state_of(net, optimizer)
            writing = dcp.async_save(state, checkpoint_id=folder, process_group=writers)
        if sums[1]:
            break
    written(writing, args.checkpoints)


def main():
    args, device, warned = parse_args(), torch.device("cpu"), []
    signal.signal(signal.SIGUSR1, lambda *signal_and_frame: warned.append(True))
    ranks = int(os.environ["WORLD_SIZE"])
    if args.batch_size % ranks or ranks % args.replicas:
        raise SystemExit(f"Give a --batch-size that {ranks} ranks divide, and --replicas of them.")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    for step, loss in train(args, device, warned):
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss:.6f}", flush=True)
    dist.destroy_process_group()
    raise SystemExit(75 if warned else 0)


if __name__ == "__main__":
    main()
