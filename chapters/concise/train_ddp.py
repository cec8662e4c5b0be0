"""Train LeNet on Fashion-MNIST with one process for each device:

    torchrun --standalone --nproc-per-node=2 train_ddp.py --epochs 5 --checkpoints lenet

It needs PyTorch, NumPy and Fashion-MNIST's four files, and nothing of the course: copy it. The page
chapters/concise/torchrun explains each function. To train something else, replace ``Images``,
``lenet`` and ``fashion_mnist``.
"""

import argparse
import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset


def parse_args(argv=None):
    """The settings of a run; ``batch_size`` counts the examples of all ranks together."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "cuda"],
                        default="cuda" if torch.cuda.is_available() else "cpu")  # fmt: skip
    parser.add_argument(
        "--data",
        default="/usr/share/datasets/fashion-mnist",
        help="the folder with Fashion-MNIST's four .gz files",
    )
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


def fashion_mnist(folder, part, number):
    """The first images and labels of a part, "train" or "t10k", from its files in ``folder``."""
    arrays = []
    for kind, header in ("images-idx3", 16), ("labels-idx1", 8):
        file = Path(folder, f"{part}-{kind}-ubyte.gz")
        if not file.exists():
            raise SystemExit(
                f"--data {folder}: {file.name} is not there. torchvision's FashionMNIST("
                "'.', download=True) brings it, then give FashionMNIST/raw."
            )
        data = gzip.decompress(file.read_bytes())
        arrays.append(np.frombuffer(data, np.uint8, offset=header))
    images, labels = arrays
    if number > len(labels):
        raise SystemExit(f"{number} images of {part} were asked for, there are {len(labels)}.")
    X = images.reshape(-1, 1, 28, 28)[:number]
    return X.astype(np.float32) / 255, labels[:number].astype(np.int64)


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


def save(args, net, optimizer, epochs_done):
    """Write a checkpoint and keep the one before it. A full disk is told, and ends nothing."""
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_done": epochs_done,
        "settings": vars(args),
    }
    data, path = io.BytesIO(), Path(args.checkpoints, f"epoch-{epochs_done:05}.pt")
    torch.save(state, data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".part"), "wb") as file:
            file.write(data.getvalue())
            file.flush()
            os.fsync(file.fileno())  # on the disk, before it gets its name
        os.replace(file.name, path)
        for old in sorted(path.parent.glob("epoch-*.pt"))[:-2]:
            old.unlink()
    except OSError as error:
        print(f"{path} was not saved: {error}", file=sys.stderr, flush=True)


def is_whole(path):
    """Whether a file is as ``torch.save`` wrote it. ``torch.load`` would not see a flipped bit."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def newest(folder):
    """The name of the newest checkpoint that is whole; None if there is none yet."""
    files = sorted(Path(folder).glob("epoch-*.pt"), reverse=True)
    for file in files:
        if is_whole(file):
            return str(file)
        print(f"{file} is damaged; the one before it is used.", file=sys.stderr, flush=True)
    if files:  # to begin anew would throw away what was trained
        raise SystemExit(f"No checkpoint in {folder} is whole. Give another --checkpoints.")
    return None


def resume(args, net, optimizer):
    """Go on from the checkpoint that rank 0 finds, if there is one; the number of epochs done.

    Ends the script if a setting that decides on the weights is not that of the checkpoint.
    """
    found = [None]
    if args.checkpoints and dist.get_rank() == 0:
        found = [newest(args.checkpoints)]
    dist.broadcast_object_list(found)  # a name: each rank reads the file itself
    if found[0] is None:
        return 0
    checkpoint = torch.load(found[0], map_location="cpu", weights_only=True)
    begun = checkpoint["settings"]
    names = "lr", "batch_size", "seed", "num_train", "clip", "dropout", "augment"
    changed = [f"{name}={begun[name]}" for name in names if begun[name] != getattr(args, name)]
    if changed:
        raise SystemExit(
            f"The checkpoint was begun with {', '.join(changed)}. "
            "Give the same, or another --checkpoints."
        )
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epochs_done"]


def train(args, device):
    """What a rank does among its peers: the weights, and (loss, accuracy) of each epoch."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.use_deterministic_algorithms(args.deterministic)
    train_data = Images(*fashion_mnist(args.data, "train", args.num_train), args.augment)
    test_data = Images(*fashion_mnist(args.data, "t10k", args.num_test))
    loader = make_loader(train_data, args, rank, world_size)

    torch.manual_seed(args.seed)  # the same weights on every rank
    net = lenet(args.dropout).to(device)
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    epochs_done = resume(args, net, optimizer)
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
                save(args, net.module, optimizer, epoch + 1)
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
