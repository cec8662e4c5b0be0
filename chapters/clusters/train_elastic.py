"""Train on as many ranks as there are, and go on when their number changes:

    torchrun --nnodes=1:3 --max-restarts=10 ... train_elastic.py --checkpoints DIR --epochs 20

All hosts see DIR. The page chapters/clusters/when-a-machine-dies explains each part,
and elastic.py, beside this file, starts torchrun on hosts.
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from d2lmgpu.data.datasets import fashion_mnist
from d2lmgpu.process import checkpoints

START = timedelta(seconds=60)  # in which all ranks find each other
SILENCE = timedelta(seconds=5)  # who then says nothing for so long is taken for dead
TO_BE_CONTINUED = 75  # the exit status of a rank that has stopped before the end, and saved


def parse_args(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoints", required=True, help="a folder that all hosts see")
    parser.add_argument("--timeline", help="a folder for what each rank did, and when")
    parser.add_argument("--num-train", type=int, default=6000)
    parser.add_argument("--batch-size", type=int, default=120, help="of all ranks together")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=20, help="updates")
    return parser.parse_args(argv)


def network(dropout):
    """In float64, so that another number of ranks changes the weights by its rounding alone."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, 10)
    ).double()


def order_of(epoch, num_train, seed):
    """All images once, in the order of this epoch: the same on any number of ranks."""
    chance = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    return torch.randperm(num_train, generator=chance)


def deal(order, position, batch_size, rank, world_size):
    """The images of this rank in the batch that begins at ``position``."""
    return order[position : position + batch_size][rank::world_size]


def update(net, optimizer, X, y, batch_size, stop, ranks):
    """One update with the gradients of all ranks; (the mean loss, how many ranks are to stop)."""
    loss = F.cross_entropy(net(X), y, reduction="sum") / batch_size
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    gradients = [p.grad for p in net.parameters()]
    mine = torch.stack([loss.detach(), torch.tensor(float(stop), dtype=loss.dtype)])
    total = torch.cat([parameters_to_vector(gradients), mine])
    dist.all_reduce(total, group=ranks)  # one message, summed in one order: bit for bit the same each time
    vector_to_parameters(total, gradients)
    optimizer.step()
    return total[-2].item(), int(total[-1])


class Log:
    """What this process did and when: a line of JSON each, in a file of its own."""

    def __init__(self, folder, **who):
        self._who = {"host": socket.gethostname(), "pid": os.getpid()} | who
        name = os.devnull
        if folder:
            name = Path(folder) / f"{self._who['host']}-{self._who['pid']}.jsonl"
            name.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(name, "a")

    def __call__(self, what, **details):
        line = {"time": time.time(), "what": what} | self._who | details
        print(json.dumps(line), file=self._file, flush=True)


def resume(args, net, optimizer, ranks):
    """(updates done, epoch, position in it) of the newest checkpoint, whose state is taken on."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    latest = [checkpoints.newest(args.checkpoints, net) if rank == 0 else None]
    dist.broadcast_object_list(latest, group=ranks)  # all go on from the same one
    if latest[0] is None:
        torch.manual_seed(args.seed * 1_000_003 + rank + 1)  # another dropout on each
        return 0, 0, 0
    step, rest = latest[0].step, latest[0].rest
    for name in ("num_train", "seed", "lr", "dropout"):  # the batch may be another one
        if (begun := rest["settings"][name]) != (given := getattr(args, name)):
            raise SystemExit(f"The checkpoint was begun with {name}={begun}, not {given}.")
    net.load_state_dict(latest[0].net)
    optimizer.load_state_dict(rest["optimizer"])
    if len(rest["random"]) == world_size:
        checkpoints.set_random_states(rest["random"][rank])
    else:  # these ranks are other ones
        torch.manual_seed((args.seed * 1_000_003 + step) * world_size + rank + 1)
    return step, rest["epoch"], rest["position"]


def save(args, net, optimizer, step, epoch, position, log, ranks):
    """A checkpoint by rank 0, of all ranks. A full disk is told, and is no reason to stop."""
    rank, random = dist.get_rank(), [None] * dist.get_world_size()
    dist.all_gather_object(random, checkpoints.random_states(), group=ranks)
    if rank == 0:
        try:
            checkpoints.save(
                args.checkpoints, step, net, optimizer=optimizer.state_dict(), random=random,
                epoch=epoch, position=position, settings=vars(args),
            )
            log("saved", step=step)
        except checkpoints.CheckpointError as error:
            log("not saved", step=step, why=str(error))
            print(error, file=sys.stderr, flush=True)


def train(args, ranks, stopping):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    log = Log(args.timeline, rank=rank, world_size=world_size)
    images = fashion_mnist(args.num_train, 1)
    X, y = torch.from_numpy(images.X_train).double(), torch.from_numpy(images.y_train)
    torch.manual_seed(args.seed)  # the same weights on every rank
    net = network(args.dropout)
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    step, epoch, position = resume(args, net, optimizer, ranks)
    log("begins", step=step)
    while epoch < args.epochs:
        order = order_of(epoch, args.num_train, args.seed)
        batch_size = min(args.batch_size, args.num_train - position)  # the last may be smaller
        mine = deal(order, position, batch_size, rank, world_size)
        loss, to_stop = update(net, optimizer, X[mine], y[mine], batch_size, bool(stopping), ranks)
        log("step", step=step, epoch=epoch, images=mine.tolist(), loss=loss)
        step, position = step + 1, position + batch_size
        if position == args.num_train:
            epoch, position = epoch + 1, 0
        if to_stop or step % args.save_every == 0 or epoch == args.epochs:
            save(args, net, optimizer, step, epoch, position, log, ranks)
        if to_stop and epoch < args.epochs:
            log("stops", step=step)
            raise SystemExit(TO_BE_CONTINUED)
    log("ends", step=step)


def main():
    args, stopping = parse_args(), []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))  # all stop after this update
    dist.init_process_group("gloo", timeout=START)
    train(args, dist.new_group(timeout=SILENCE), stopping)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
