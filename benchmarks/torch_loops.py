"""PyTorch: our loop beside D2L's own, LeNet and ResNet-18, on one device and on two."""

import contextlib
import io
from functools import partial

import torch
from torch import nn

from benchmarks import lenet
from benchmarks.measure import Timed, pairs
from d2lmgpu import torch as d2l

LENET_FLOP = 13.5e6  # forward and backward, a 28x28 image


class Resident:
    """Our training set on one device, its batches drawn there, channels last."""

    def __init__(self, device):
        data_iter, _ = d2l.load_data_fashion_mnist(lenet.BATCH_SIZE)
        X = torch.from_numpy(data_iter.X).contiguous(memory_format=torch.channels_last)
        self.X, self.y = X.to(device), torch.from_numpy(data_iter.y).to(device)

    def __len__(self):
        return -(-len(self.y) // lenet.BATCH_SIZE)

    def __iter__(self):
        for rows in torch.randperm(len(self.y), device=self.y.device).split(lenet.BATCH_SIZE):
            yield self.X[rows], self.y[rows]


def fast_lenet() -> float:
    """Samples/s of LeNet from scratch on one device: bf16 and channels-last, data there."""
    (device,) = devices = d2l.devices(1)
    params = [
        p.to(memory_format=torch.channels_last) if p.ndim == 4 else p for p in lenet.parameters(d2l)
    ]
    device_params = [d2l.get_params(params, device)]
    timed = Timed(Resident(device), d2l.synchronize)
    for X, y in timed:
        with torch.autocast(device.type, torch.bfloat16):
            d2l.train_batch(X, y, device_params, devices, 0.1)
    return timed.rate


def d2l_lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 20, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def theirs(make_net) -> float:
    """Samples/s of D2L's own loader and multi-GPU loop (``train_ch13``), on one device."""
    d2l.set_figsize  # noqa: B018  (lets torchvision be imported, see backend.hand_on)
    import d2l.torch as book

    net = make_net()
    train_iter, test_iter = book.load_data_fashion_mnist(lenet.BATCH_SIZE)
    timed = Timed(train_iter, d2l.synchronize)
    trainer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = nn.CrossEntropyLoss(reduction="none")
    with contextlib.redirect_stdout(io.StringIO()):
        first_test_batch = [next(iter(test_iter))]
        book.train_ch13(net, timed, first_test_batch, loss, trainer, 1, [d2l.try_gpu(0)])
    return timed.rate


def resnet_rate(net, data_iter, device, part=slice(None), fast=False, **turns) -> float:
    """Samples/s of a loop that trains ``net`` on ``part`` of each batch; ``fast``: in bf16."""
    trainer = torch.optim.SGD(net.parameters(), lr=0.1)
    timed = Timed(data_iter, d2l.synchronize, **turns)
    for X, y in timed:
        X, y = X[part].to(device), y[part].to(device)
        trainer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            loss = nn.functional.cross_entropy(net(X), y)
        loss.backward()
        trainer.step()
    return timed.rate


def fast_resnet() -> float:
    """Samples/s of ResNet-18 on one device: as for LeNet."""
    device = d2l.try_gpu(0)
    net = d2l.resnet18(10).to(device, memory_format=torch.channels_last)
    return resnet_rate(net, Resident(device), device, fast=True)


def ddp_rate() -> float:
    """Samples/s of DistributedDataParallel, ResNet-18 of width 8; runs inside ``launch``."""
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = d2l.try_gpu(rank)
    net = nn.parallel.DistributedDataParallel(
        d2l.resnet18(10, width=8).to(device),
        device_ids=[rank] if device.type == "cuda" else None,
    )
    train_iter, _ = d2l.load_data_fashion_mnist(lenet.BATCH_SIZE)
    part = slice(rank, None, world_size)
    return resnet_rate(net, train_iter, device, part, batches=1, turns=20)


def matrix_peak(dtype, n=2048) -> float:
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


def against_d2l() -> dict:
    """On one device: D2L's loop first, ours second."""
    torch.set_float32_matmul_precision("highest")
    equal = pairs(partial(theirs, d2l_lenet), partial(lenet.rate, d2l, 1))
    fast = pairs(partial(theirs, d2l_lenet), fast_lenet)
    result = {"LeNet, equal arithmetic": equal, "LeNet, bf16 and channels-last": fast}
    if d2l.num_gpus() > 0:
        resnet = partial(theirs, partial(d2l.resnet18, 10))
        result["ResNet-18, bf16 and channels-last"] = pairs(resnet, fast_resnet)
    peaks = {"float32": matrix_peak(torch.float32), "bf16": matrix_peak(torch.bfloat16)}
    shares = {
        "LeNet, float32": equal["second"] * LENET_FLOP / peaks["float32"],
        "LeNet, bf16": fast["second"] * LENET_FLOP / peaks["bf16"],
    }
    return {"pairs": result, "matrix peak, FLOP/s": peaks, "share of peak": shares}


def two_devices() -> dict:
    """One device first, two second."""
    from d2lmgpu.launch import launch

    single, pair = (lambda k=k: launch(ddp_rate, num_processes=k)[0] for k in (1, 2))
    return {
        "pairs": {
            "LeNet from scratch": lenet.two_devices(d2l, "torch"),
            "ResNet-18 (width 8), DDP": pairs(single, pair),
        },
        "time of an update, two devices": lenet.where_time_goes(d2l),
    }
