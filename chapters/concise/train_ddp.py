"""Train LeNet on Fashion-MNIST with one process for each device:

    torchrun --standalone --nproc-per-node=2 train_ddp.py --epochs 5 --checkpoints lenet

The page chapters/concise/torchrun explains each function. To train something else, replace
``Images``, ``lenet`` and the line that calls ``fashion_mnist``.
"""

import argparse
import os
import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

from d2lmgpu.data.datasets import fashion_mnist
from d2lmgpu.process import checkpoints


def parse_args(argv=None):
    """The settings of a run; ``batch_size`` counts the examples of all ranks together."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "cuda"],
                        default="cuda" if torch.cuda.is_available() else "cpu")  # fmt: skip
    parser.add_argument("--num-train", type=int, default=6000)
    parser.add_argument("--num-test", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=120, help="of all ranks together")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of a gradient")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--augment", action="store_true", help="mirror every other image")
    parser.add_argument("--workers", type=int, default=0, help="loading processes of each rank")
    parser.add_argument("--deterministic", action="store_true", help="slower on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoints", help="a folder to go on from, written to after each epoch")
    return parser.parse_args(argv)


class Images(Dataset):
    """Images and labels in memory; with ``augment``, half of the images come mirrored."""

    def __init__(self, X, y, augment=False):
        self.X, self.y, self.augment = torch.from_numpy(X), torch.from_numpy(y), augment

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        mirrored = self.augment and torch.rand(()) < 0.5
        return self.X[i].flip(-1) if mirrored else self.X[i], self.y[i]


def make_loader(data, args, rank, world_size):
    """Batches of this rank: its part of every global batch."""
    if args.batch_size % world_size:
        raise SystemExit(f"--batch-size {args.batch_size}: give a multiple of {world_size}.")
    return DataLoader(
        data,
        batch_size=args.batch_size // world_size,
        sampler=DistributedSampler(data, world_size, rank, seed=args.seed),
        num_workers=args.workers,
        pin_memory=args.device == "cuda",
    )


def are_real(loader, step, size, device):
    """Which of the ``size`` examples of this step are not the copies that the sampler adds."""
    sampler = loader.sampler
    order = step * loader.batch_size + torch.arange(size, device=device)
    return order * sampler.num_replicas + sampler.rank < len(loader.dataset)


def lenet(dropout):
    """LeNet without batch normalization."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(800, 128), nn.ReLU(), nn.Dropout(dropout), nn.Linear(128, 10),
    )  # fmt: skip


def train_epoch(net, loader, optimizer, clip):
    """One update for each global batch; the mean loss over the examples of all ranks."""
    net.train()
    world_size, left = loader.sampler.num_replicas, len(loader.dataset)
    device = next(net.parameters()).device
    total = torch.zeros((), device=device)
    for step, (X, y) in enumerate(loader):
        global_batch = min(left, loader.batch_size * world_size)
        left -= global_batch
        real = are_real(loader, step, len(y), device)
        X, y = (data.to(device, non_blocking=True) for data in (X, y))
        loss = (F.cross_entropy(net(X), y, reduction="none") * real).sum()
        optimizer.zero_grad()
        (loss * world_size / global_batch).backward()  # in here the ranks average
        nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader.dataset)


def evaluate(net, data, rank, world_size):
    """The accuracy on ``data``, each example counted once; with rank 0's buffers, as saved."""
    net.eval()
    device = next(net.parameters()).device
    for buffer in net.module.buffers():
        dist.broadcast(buffer, 0)
    right = torch.zeros((), device=device)
    with torch.no_grad():
        part = Subset(data, range(rank, len(data), world_size))
        for X, y in DataLoader(part, batch_size=500):
            right += (net.module(X.to(device)).argmax(1) == y.to(device)).sum()
    dist.all_reduce(right)
    return right.item() / len(data)


def noise_seed(seed, epoch, rank, world_size):
    """Another number for each rank in each epoch, and for runs of any other seed."""
    return (seed * 1_000_003 + epoch) * world_size + rank + 1


def save(args, net, optimizer, step, epochs_done):
    """Write a checkpoint after ``step`` updates. A full disk is told, and is no reason to stop."""
    try:
        checkpoints.save(args.checkpoints, step, net, optimizer=optimizer.state_dict(),
                         epochs_done=epochs_done, settings=vars(args))  # fmt: skip
    except checkpoints.CheckpointError as error:
        print(error, file=sys.stderr, flush=True)


def newest(args, net):
    """The newest checkpoint that rank 0 finds, for all ranks; None if there is none."""
    found = [None]
    if args.checkpoints and dist.get_rank() == 0:
        found = [checkpoints.newest(args.checkpoints, net)]
    dist.broadcast_object_list(found)
    return found[0]


def resume(args, checkpoint, net, optimizer):
    """Take on the state in the checkpoint, if there is one; the number of epochs done.

    Ends the script if a setting that decides on the weights is not that of the checkpoint.
    """
    if checkpoint is None:
        return 0
    begun = checkpoint.rest["settings"]
    names = "lr", "batch_size", "seed", "num_train", "clip", "dropout", "augment"
    changed = [f"{name}={begun[name]}" for name in names if begun[name] != getattr(args, name)]
    if changed:
        raise SystemExit(f"The checkpoint was begun with {', '.join(changed)}. "
                         "Give the same, or another --checkpoints.")  # fmt: skip
    net.load_state_dict(checkpoint.net)
    optimizer.load_state_dict(checkpoint.rest["optimizer"])
    return checkpoint.rest["epochs_done"]


def train(args, device):
    """What a rank does among its peers: the weights, and (loss, accuracy) of each epoch."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.use_deterministic_algorithms(args.deterministic)
    images = fashion_mnist(args.num_train, args.num_test)
    train_data = Images(images.X_train, images.y_train, args.augment)
    test_data = Images(images.X_test, images.y_test)
    loader = make_loader(train_data, args, rank, world_size)

    torch.manual_seed(args.seed)  # the same weights on every rank
    net = lenet(args.dropout).to(device)
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    epochs_done = resume(args, newest(args, net), net, optimizer)
    if epochs_done and rank == 0:
        print(f"goes on after epoch {epochs_done} of {args.epochs}", flush=True)
    net = DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None)

    history = []
    for epoch in range(epochs_done, args.epochs):
        loader.sampler.set_epoch(epoch)  # another order
        torch.manual_seed(noise_seed(args.seed, epoch, rank, world_size))
        loss = train_epoch(net, loader, optimizer, args.clip)
        accuracy = evaluate(net, test_data, rank, world_size)
        history.append((loss, accuracy))
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {accuracy:.3f}", flush=True)
            if args.checkpoints:
                save(args, net.module, optimizer, (epoch + 1) * len(loader), epoch + 1)
    weights = net.module.state_dict()
    return {name: value.cpu() for name, value in weights.items()}, history


def main():
    args = parse_args()
    if args.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    device = torch.device("cpu")
    if args.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    train(args, device)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
