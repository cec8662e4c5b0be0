"""The PyTorch backend: ``from d2lmgpu import torch as d2l``.

The same public names and signatures as ``d2lmgpu.mxnet``. Without a GPU a device is one CPU
core: torch computes with one thread, and ``parallel`` gives every device a thread of its own.
"""

import os
from statistics import median

from d2lmgpu.helpers import hand_on, not_installed

try:
    import torch
    from torch import distributed as dist
    from torch import nn
    from torch.nn import functional as F
except ModuleNotFoundError as error:
    raise not_installed(error) from error

from d2lmgpu import devices as _devices
from d2lmgpu import parallel as _parallel
from d2lmgpu import profiles as _profiles
from d2lmgpu.animator import Animator
from d2lmgpu.collectives import shard_sizes
from d2lmgpu.data import fashion_mnist, mnist
from d2lmgpu.devices import check_run
from d2lmgpu.loader import iterators, set_seed
from d2lmgpu.runs import Run
from d2lmgpu.timing import Accumulator, Timer

__all__ = [
    "Accumulator", "Animator", "Residual", "Run", "Timer", "accuracy", "allreduce", "array",
    "balance", "check_run", "cpu", "devices", "evaluate_accuracy_gpu", "evaluate_accuracy_gpus",
    "forward_backward", "get_params", "gpu", "lenet", "load_data_fashion_mnist",
    "load_data_mnist", "num_gpus", "overlap", "parallel", "profile", "resnet18", "seed", "sgd",
    "shard_sizes", "split_batch", "synchronize", "train_batch", "try_all_gpus", "try_gpu",
]  # fmt: skip

if not torch.cuda.is_available() or os.environ.get(_devices.VARIABLE, "").startswith("cpu"):
    torch.set_num_threads(1)  # a device is one core; threads of one shard must not spin on another

_threads = _parallel.DeviceThreads(setup=lambda: torch.set_num_threads(1))


# Devices


def num_gpus():
    """Number of GPUs that PyTorch sees."""
    return torch.cuda.device_count()


def gpu(i=0):
    """GPU number ``i``, whether or not it exists."""
    return torch.device("cuda", i)


def cpu(i=0):
    """CPU device number ``i``: arrays moved to another number are copies."""
    return torch.device("cpu", i)


def try_gpu(i=0):
    """Device ``i``: a GPU or, on a machine without one, a CPU device. DeviceError if too many."""
    return gpu(i) if _devices.check_index(i, num_gpus()) == "gpu" else cpu(i)


def try_all_gpus():
    """All devices that there are, as a list; never empty."""
    return devices(_devices.available(num_gpus())[1])


def devices(k):
    """The first ``k`` devices, as a list. DeviceError unless there are that many."""
    kind = _devices.check_count(k, num_gpus())
    return [gpu(i) if kind == "gpu" else cpu(i) for i in range(k)]


def overlap(k):
    """How ``k`` devices share time here: 'one device', 'in parallel' or 'simulated'."""
    return _devices.overlap(k, num_gpus())


def parallel(fn, *per_device_args):
    """``[fn(*args) for each device]``, all devices at once.

    Each of ``per_device_args`` is a list with one entry a device. On GPUs a plain loop: kernels
    are asynchronous. On the CPU a thread for each core, in which gradients and automatic casts are
    on or off as they are here.
    """
    if _devices.available(num_gpus())[0] == "gpu":
        return [fn(*args) for args in zip(*per_device_args, strict=True)]
    grad, cast = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu")

    def call(*args):  # PyTorch keeps these settings for each thread
        with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype, cast):
            return fn(*args)

    return _threads.run(call, *per_device_args)


def synchronize():
    """Wait until every device has done its work (on a CPU it has, once a call returns)."""
    for i in range(num_gpus()):
        torch.cuda.synchronize(i)


# Settings and data


def seed(n):
    """Seed PyTorch's random numbers and the order of the batches."""
    torch.manual_seed(n)
    set_seed(n)


def profile():
    """How much data and how many epochs runs use here; ProfileError for an unknown profile."""
    return _profiles.profile(num_gpus())


def array(x):
    """The NumPy array ``x`` as a tensor on the CPU, of the same type."""
    return torch.from_numpy(x)


def load_data_fashion_mnist(batch_size, resize=None):
    """Fashion-MNIST, as much of it as the profile says, as ``(train_iter, test_iter)``.

    Batches are X (batch, 1, 28, 28) float32 in [0, 1] and y (batch,) int64, in memory, the
    training set shuffled by seed, the last batch kept; ``resize`` is a new side in pixels.
    Raises ValueError for a batch below 1 or above the data, DataError where that is missing.
    """
    p = profile()
    data = fashion_mnist(p.num_train, p.num_test)
    return iterators(data, p, batch_size, resize, array)


def load_data_mnist(batch_size, resize=None):
    """MNIST, or handwritten digits that stand in for it (a printed line says so); as above.

    The profile gives the most images that are used; the digits are fewer than that.
    """
    return iterators(mnist(), profile(), batch_size, resize, array)


# Data parallelism from scratch


def split_batch(X, y, devices, weights=None):
    """Split ``X`` (n, …) and ``y`` (n,) over ``devices``: ``([X shards], [y shards])``.

    The shards are near-equal, the larger ones first, or proportional to ``weights`` (one a
    device, summing to 1). With fewer examples than devices the last shards are empty. Each shard
    goes straight to its device. Raises ValueError for unlike lengths and CollectiveError for
    weights that are not k non-negative numbers summing to 1. Defined in chapters/scratch/pytorch.
    """
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} examples, y has {y.shape[0]}: give as many of each.")
    sizes = shard_sizes(X.shape[0], len(devices), weights)
    return (
        [shard.to(device) for shard, device in zip(X.split(sizes), devices)],
        [shard.to(device) for shard, device in zip(y.split(sizes), devices)],
    )


def get_params(params, device):
    """A copy of ``params`` on ``device``, each with a gradient of its own that starts at zero.

    Defined in chapters/scratch/pytorch.
    """
    new_params = [p.detach().to(device, copy=True).requires_grad_() for p in params]
    for p in new_params:
        p.grad = torch.zeros_like(p)
    return new_params


def allreduce(data):
    """Replace each tensor in ``data`` (one a device, of one shape) by the sum of all, in place.

    Defined in chapters/scratch/pytorch.
    """
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)


def lenet(X, params):
    """LeNet's outputs (n, 10) for images ``X`` (n, 1, 28, 28); ``params`` are W1, b1, … W4, b4.

    Shapes of W1 to W4: (20, 1, 3, 3), (50, 20, 5, 5), (800, 128), (128, 10). LeCun et al. (1998),
    with the ReLU and the sizes of Dive into Deep Learning (Zhang et al., 2023).
    Defined in chapters/scratch/pytorch.
    """
    h1 = F.relu(F.conv2d(X, params[0], params[1]))
    h1 = F.avg_pool2d(h1, 2)
    h2 = F.relu(F.conv2d(h1, params[2], params[3]))
    h2 = F.avg_pool2d(h2, 2)
    h3 = F.relu(h2.reshape(h2.shape[0], -1) @ params[4] + params[5])
    return h3 @ params[6] + params[7]


def sgd(params, lr, batch_size):
    """One step of minibatch SGD, in place, on a list of parameters; then zero gradients.

    Their gradients are of the loss *summed* over ``batch_size`` examples.
    """
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad / batch_size
            p.grad.zero_()


def forward_backward(X, y, params):
    """Add the gradient of the loss, summed over one shard, to ``params``; return that loss.

    ``X`` (n, 1, 28, 28), ``y`` (n,), and LeNet's parameters on the same device. A device
    without data adds nothing. Defined in chapters/scratch/pytorch.
    """
    if len(y) == 0:
        return 0.0
    loss = F.cross_entropy(lenet(X, params), y, reduction="sum")
    loss.backward()
    return loss.detach()


def train_batch(X, y, device_params, devices, lr):
    """One update of LeNet's replicas ``device_params`` (one list a device) on a global batch.

    ``X`` (n, 1, 28, 28) and ``y`` (n,) are on the CPU; ``lr`` scales the mean gradient of the n.
    Returns the losses, summed over each shard. Defined in chapters/scratch/pytorch.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    losses = parallel(forward_backward, X_shards, y_shards, device_params)
    with torch.no_grad():
        for i in range(len(device_params[0])):
            allreduce([params[i].grad for params in device_params])
    for params in device_params:
        sgd(params, lr, len(y))
    return losses


def balance(fn, X, y, params, devices, *per_device_args, weights=None):
    """Weights for ``split_batch`` that let all ``devices`` finish together, as measured.

    ``fn(X, y, params, …)`` is what a device does with its shard, as ``parallel`` would call it;
    each of ``per_device_args`` is a list with one entry a device. It runs on a copy of ``params``,
    on one device after the other and six times on each. The first time warms up; by the median of
    the rest a device has a speed in examples a second, and its weight is its part of all speeds.

    The batch is split by ``weights`` (None: evenly). A step has costs that do not shrink with the
    shard, so start with None and give the answer back once or twice. Raises ValueError where a
    device would have no example, else as ``split_batch``.
    Defined in chapters/scaling/unequal-devices.
    """
    X_shards, y_shards = split_batch(X, y, devices, weights)
    if not all(len(shard) for shard in y_shards):
        raise ValueError(
            f"The shards have {[len(shard) for shard in y_shards]} examples. The speed of a device "
            "is measured on its shard: give each at least one, by a larger batch or other weights."
        )
    replicas = [get_params(params, device) for device in devices]
    calls = list(zip(X_shards, y_shards, replicas, *per_device_args, strict=True))
    timers = [Timer() for _ in devices]
    for _ in range(6):
        for timer, args in zip(timers, calls):
            synchronize()
            timer.start()
            fn(*args)
            synchronize()
            timer.stop()
    speeds = [len(shard) / median(timer.times[1:]) for shard, timer in zip(y_shards, timers)]
    return [speed / sum(speeds) for speed in speeds]


# Networks


class Residual(nn.Module):
    """Residual block (He et al., 2016): two 3x3 convolutions beside the identity.

    ``use_1x1conv`` puts a 1x1 convolution on the shortcut, needed where the number of channels or
    the ``strides`` change the shape.
    """

    def __init__(self, num_channels, use_1x1conv=False, strides=1):
        super().__init__()
        self.conv1 = nn.LazyConv2d(num_channels, kernel_size=3, padding=1, stride=strides)
        self.conv2 = nn.LazyConv2d(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.LazyConv2d(num_channels, 1, stride=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.LazyBatchNorm2d(), nn.LazyBatchNorm2d()

    def forward(self, X):
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return F.relu(Y + (self.conv3(X) if self.conv3 else X))


def resnet18(num_classes, in_channels=1, width=64):
    """ResNet-18 for small images: 3x3 stem, no max-pooling; channels ``width`` to 8 ``width``.

    Maps (n, in_channels, 28, 28) to (n, num_classes). He et al. (2016).
    Defined in chapters/concise/pytorch.
    """
    net = nn.Sequential(
        nn.Conv2d(in_channels, width, kernel_size=3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
    )
    for stage in range(4):
        channels, strides = width * 2**stage, 1 if stage == 0 else 2
        net.append(Residual(channels, use_1x1conv=stage > 0, strides=strides))
        net.append(Residual(channels))
    net.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, num_classes)])
    net.eval()(torch.zeros(1, in_channels, 28, 28))  # lazy layers learn their shapes
    return net.train()


# Accuracy


def accuracy(y_hat, y):
    """Number of correct predictions: ``y_hat`` (n, classes) or (n,), ``y`` (n,)."""
    if y_hat.ndim > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(dim=1)
    if y_hat.shape != y.shape:  # they would be compared all with all
        raise ValueError(f"y_hat is for {tuple(y_hat.shape)} examples, y for {tuple(y.shape)}.")
    return float((y_hat.to(y.dtype) == y).sum())


def evaluate_accuracy_gpu(net, data_iter, device=None):
    """Share of ``data_iter`` that ``net`` (a Module or a function) classifies right, on one device.

    ``device`` None: where the parameters of ``net`` are.
    """
    if isinstance(net, nn.Module):
        net.eval()
        device = device or next(net.parameters()).device
    metric = Accumulator(2)
    with torch.no_grad():
        for X, y in data_iter:
            X, y = X.to(device), y.to(device)
            metric.add(accuracy(net(X), y), len(y))
    return metric[0] / metric[1]


def evaluate_accuracy_gpus(net, data_iter):
    """Share of ``data_iter`` classified right, each image counted once, over all devices.

    In a worker of a DistributedDataParallel run every rank takes its part of each batch, and the
    counts are summed; otherwise ``net`` is evaluated where it is. Defined in
    chapters/concise/pytorch.
    """
    distributed = dist.is_available() and dist.is_initialized()
    rank, world_size = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)
    net = getattr(net, "module", net)  # DDP's wrapper might wait for ranks that have no images
    net.eval()
    device = next(net.parameters()).device
    counts = torch.zeros(2, device=device)
    with torch.no_grad():
        for X, y in data_iter:
            X, y = (data.tensor_split(world_size)[rank].to(device) for data in (X, y))
            if len(y):
                counts += torch.tensor([accuracy(net(X), y), len(y)], device=device)
    if distributed:
        dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def __getattr__(name):
    """Hand on d2l's pure helpers; what trains, loads data or picks devices is ours or raises."""
    return hand_on(name, "d2l.torch", __all__)
