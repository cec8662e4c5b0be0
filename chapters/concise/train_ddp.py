"""Train LeNet on Fashion-MNIST with one process for each device:

    torchrun --standalone --nproc-per-node=2 train_ddp.py --epochs 5 --checkpoints lenet

It needs PyTorch and the data set's four files, and nothing else: copy it, and replace
``fashion_mnist`` and ``lenet``. What it lacks for a night unwatched is in train_ddp_overnight.py.
"""

import argparse
import gzip
import os
from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def make_parser():
    """The settings of a run; the batch size is that of all ranks together."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--checkpoints", help="a folder to go on from, written each epoch")
    numbers = {"num-train": 6000, "num-test": 1000, "batch-size": 120, "epochs": 5,
               "lr": 0.05, "clip": 1.0, "dropout": 0.0, "workers": 0, "seed": 0}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser


def fashion_mnist(folder, part, number):
    """The first images and labels of a part, "train" or "t10k", from its files in ``folder``."""
    arrays = []
    for kind, header in ("images-idx3", 16), ("labels-idx1", 8):
        data = gzip.decompress(Path(folder, f"{part}-{kind}-ubyte.gz").read_bytes())
        arrays.append(torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=header))
    X, y = arrays[0].view(-1, 1, 28, 28)[:number], arrays[1][:number]
    return TensorDataset(X / 255, y.long())


def make_loader(data, args, rank, world_size):
    """Batches of this rank: its part of every global batch. What fills no batch is left out."""
    if args.batch_size % world_size or args.batch_size > len(data):
        raise SystemExit(f"--batch-size: give a multiple of {world_size}, at most {len(data)}.")
    sampler = DistributedSampler(data, world_size, rank, seed=args.seed, drop_last=True)
    return DataLoader(data, args.batch_size // world_size, sampler=sampler, drop_last=True,
                      num_workers=args.workers, pin_memory=args.device == "cuda")


def lenet(dropout):
    """LeNet without batch normalization."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(800, 128), nn.ReLU(), nn.Dropout(dropout), nn.Linear(128, 10))


def train_epoch(net, loader, optimizer, args):
    """One update for each global batch; the mean loss over the examples of all ranks."""
    net.train()
    total = torch.zeros((), device=args.device)
    for X, y in loader:
        X, y = (data.to(args.device, non_blocking=True) for data in (X, y))
        loss = nn.functional.cross_entropy(net(X), y)
        optimizer.zero_grad()
        loss.backward()  # in here the ranks average
        nn.utils.clip_grad_norm_(net.parameters(), args.clip)
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader) / dist.get_world_size()


def evaluate(net, data, device):
    """The accuracy on ``data``, each example counted once; with rank 0's buffers, as saved."""
    net.eval()
    for buffer in net.module.buffers():
        dist.broadcast(buffer, 0)
    part = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
    right = torch.zeros((), device=device)
    with torch.no_grad():
        for X, y in DataLoader(part, batch_size=500):
            right += (net.module(X.to(device)).argmax(1) == y.to(device)).sum()
    dist.all_reduce(right)
    return right.item() / len(data)


def noise_seed(seed, epoch, rank, world_size):
    """Another number for each rank in each epoch, and for runs of any other seed."""
    return (seed * 1_000_003 + epoch) * world_size + rank + 1


def save(args, net, optimizer, epochs_done):
    """Write the checkpoint. It gets its name when it is whole."""
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    os.makedirs(args.checkpoints, exist_ok=True)
    file = Path(args.checkpoints, "checkpoint.pt")
    torch.save(state | {"epochs_done": epochs_done}, f"{file}.part")
    os.replace(f"{file}.part", file)


def resume(args, net, optimizer):
    """Go on from the checkpoint, if there is one; the number of epochs done."""
    file = Path(args.checkpoints, "checkpoint.pt")
    if not file.exists():
        return 0
    state = torch.load(file, map_location="cpu", weights_only=True)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epochs_done"]


def train(net, train_data, test_data, args, save=save, resume=resume):
    """What a rank does among its peers; the weights are in ``net`` when it is done."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    loader = make_loader(train_data, args, rank, world_size)
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    epochs_done = resume(args, net, optimizer) if args.checkpoints else 0
    net = DistributedDataParallel(net)
    for epoch in range(epochs_done, args.epochs):
        loader.sampler.set_epoch(epoch)  # another order
        torch.manual_seed(noise_seed(args.seed, epoch, rank, world_size))
        loss = train_epoch(net, loader, optimizer, args)
        accuracy = evaluate(net, test_data, args.device)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {accuracy:.3f}", flush=True)
            if args.checkpoints:
                save(args, net.module, optimizer, epoch + 1)


def main():
    args = make_parser().parse_args()
    if args.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    train_data = fashion_mnist(args.data, "train", args.num_train)
    test_data = fashion_mnist(args.data, "t10k", args.num_test)
    torch.manual_seed(args.seed)  # the same weights on every rank
    train(lenet(args.dropout).to(args.device), train_data, test_data, args)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
