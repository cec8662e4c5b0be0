"""PyTorch: our loop beside D2L's own, LeNet and ResNet-18, on one device and on two."""

import contextlib
import io
from functools import partial

import torch
from torch import nn

from benchmarks.apart import Apart
from benchmarks.measure import SHAPES, SHORT_TURNS, Timed, pairs
from benchmarks.parts import where_time_goes
from d2lmgpu import torch as d2l

LENET_FLOP = 13.5e6  # forward and backward, a 28x28 image


def lenet_params():
    d2l.seed(0)
    return [torch.randn(s) * 0.05 if len(s) > 1 else torch.zeros(s) for s in SHAPES]


def ours(num_gpus, fast=False, batch_size=256, **turns):
    """Samples/s of LeNet from scratch; ``turns`` as for Timed.

    ``fast``: bf16 and channels-last, data on the device.
    """
    devices = d2l.devices(num_gpus)
    params = lenet_params()
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)
    if fast:
        params = [p.to(memory_format=torch.channels_last) if p.ndim == 4 else p for p in params]
        train_iter = Resident(train_iter, devices[0])
    device_params = [d2l.get_params(params, device) for device in devices]
    timed = Timed(train_iter, d2l.synchronize, **turns)
    for X, y in timed:
        with torch.autocast(devices[0].type, torch.bfloat16, enabled=fast):
            d2l.train_batch(X, y, device_params, devices, 0.1)
    return timed.rate


class Resident:
    """The whole training set on one device, its batches drawn there, channels last."""

    def __init__(self, data_iter, device):
        X = torch.from_numpy(data_iter.X).contiguous(memory_format=torch.channels_last)
        self.X, self.y = X.to(device), torch.from_numpy(data_iter.y).to(device)
        self.batch_size = data_iter.batch_size

    def __len__(self):
        return -(-len(self.y) // self.batch_size)

    def __iter__(self):
        for rows in torch.randperm(len(self.y), device=self.y.device).split(self.batch_size):
            yield self.X[rows], self.y[rows]


def d2l_lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def theirs(net, batch_size=256):
    """Samples/s of D2L's own loader and multi-GPU loop (``train_ch13``), on one device."""
    d2l.set_figsize  # noqa: B018  (lets torchvision be imported, see helpers.hand_on)
    import d2l.torch as book

    train_iter, test_iter = book.load_data_fashion_mnist(batch_size)
    timed = Timed(train_iter, d2l.synchronize)
    trainer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = nn.CrossEntropyLoss(reduction="none")
    with contextlib.redirect_stdout(io.StringIO()):
        first_test_batch = [next(iter(test_iter))]
        book.train_ch13(net, timed, first_test_batch, loss, trainer, 1, [d2l.try_gpu(0)])
    return timed.rate


def resnet(fast=False, batch_size=256, width=64):
    """Samples/s of ResNet-18 on one device; ``fast`` as for LeNet."""
    device = d2l.try_gpu(0)
    net = d2l.resnet18(10, width=width).to(device)
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)
    if fast:
        net, train_iter = net.to(memory_format=torch.channels_last), Resident(train_iter, device)
    trainer = torch.optim.SGD(net.parameters(), lr=0.1)
    timed = Timed(train_iter, d2l.synchronize)
    for X, y in timed:
        X, y = X.to(device), y.to(device)
        trainer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            loss = nn.functional.cross_entropy(net(X), y)
        loss.backward()
        trainer.step()
    return timed.rate


def matrix_peak(dtype, n=2048):
    """Measured FLOP/s of one device's matrix product."""
    device = d2l.try_gpu(0)
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    timer = d2l.Timer()
    for _ in range(6):
        timer.start()
        a @ b
        d2l.synchronize()
        timer.stop()
    return 2 * n**3 / min(timer.times)


def ddp_rate(width=8, batch_size=256):
    """Samples/s of one rank's DistributedDataParallel loop; runs inside ``launch``."""
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = d2l.try_gpu(rank)
    net = d2l.resnet18(10, width=width).to(device)
    net = nn.parallel.DistributedDataParallel(
        net, device_ids=[rank] if device.type == "cuda" else None
    )
    trainer = torch.optim.SGD(net.parameters(), lr=0.1)
    train_iter, _ = d2l.load_data_fashion_mnist(batch_size)
    timed = Timed(train_iter, d2l.synchronize, batches=1, turns=20)
    for X, y in timed:
        X, y = X[rank::world_size].to(device), y[rank::world_size].to(device)
        trainer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        trainer.step()
    return timed.rate


def against_d2l():
    """On one device: D2L's loop first, ours second."""
    torch.set_float32_matmul_precision("highest")
    gpu = d2l.num_gpus() > 0
    width = 64 if gpu else 8
    result = {
        "LeNet, equal arithmetic": pairs(lambda: theirs(d2l_lenet()), lambda: ours(1)),
        "LeNet, bf16 and channels-last": pairs(
            lambda: theirs(d2l_lenet()), lambda: ours(1, fast=True)
        ),
    }
    if gpu:
        result["ResNet-18, bf16 and channels-last"] = pairs(
            lambda: theirs(d2l.resnet18(10)), lambda: resnet(fast=True, width=width)
        )
    peaks = {"float32": matrix_peak(torch.float32), "bf16": matrix_peak(torch.bfloat16)}
    equal, fast = list(result.values())[:2]
    shares = {
        "LeNet, float32": equal["second"] * LENET_FLOP / peaks["float32"],
        "LeNet, bf16": fast["second"] * LENET_FLOP / peaks["bf16"],
    }
    return {"pairs": result, "matrix peak, FLOP/s": peaks, "share of peak": shares}


def two_devices():
    """One device first, two second."""
    from d2lmgpu.launch import launch

    def ddp(num_processes):
        return launch(ddp_rate, num_processes=num_processes)[0]

    with Apart("torch") as apart:
        one, two = (partial(ours, k, **SHORT_TURNS) for k in (1, 2))
        lenet = pairs(one, two, ceiling=apart.rate)
    return {
        "pairs": {
            "LeNet from scratch": lenet,
            "ResNet-18 (width 8), DDP": pairs(lambda: ddp(1), lambda: ddp(2)),
        },
        "time of an update, two devices": where_time_goes(d2l, lenet_params()),
    }
