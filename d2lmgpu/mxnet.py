"""The MXNet backend: ``from d2lmgpu import mxnet as d2l``.

The same public names and signatures as ``d2lmgpu.torch``. Without a GPU a device is one CPU
core: MXNet computes with one thread, and ``parallel`` gives every device a thread of its own.
"""

import os
from statistics import median

# A device is one core, whatever a cluster has set. MXNet reads this when it is imported, so it must
# come before.
os.environ["OMP_NUM_THREADS"] = "1"

from d2lmgpu import cuda_libraries
from d2lmgpu.helpers import hand_on, not_installed
from d2lmgpu.memory import keep_freed_memory

cuda_libraries.preload()
keep_freed_memory()

try:
    import mxnet as mx
    from mxnet import autograd, gluon, np, npx
    from mxnet.gluon import nn
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

npx.set_np()

_threads = _parallel.DeviceThreads(setup=npx.set_np)  # NumPy semantics are set for each thread


# Devices


def num_gpus():
    """Number of GPUs that MXNet sees."""
    return npx.num_gpus()


def gpu(i=0):
    """GPU number ``i``, whether or not it exists."""
    return npx.gpu(i)


def cpu(i=0):
    """CPU device number ``i``: arrays moved to another number are copies."""
    return npx.cpu(i)


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
    are asynchronous. On the CPU a thread for each core, which records and trains or not as is done
    here; several return when what they have queued is computed.
    """
    if _devices.available(num_gpus())[0] == "gpu":
        return [fn(*args) for args in zip(*per_device_args, strict=True)]
    here = autograd.is_recording(), autograd.is_training()

    def call(*args):  # MXNet keeps these settings for each thread
        before = autograd.set_recording(here[0]), autograd.set_training(here[1])
        try:
            result = fn(*args)
            if len(per_device_args[0]) > 1:  # measured: else the devices overlap less
                npx.waitall()
            return result
        finally:
            autograd.set_recording(before[0])
            autograd.set_training(before[1])

    return _threads.run(call, *per_device_args)


def synchronize():
    """Wait until every device has done its work."""
    npx.waitall()


# Settings and data


def seed(n):
    """Seed MXNet's random numbers and the order of the batches."""
    mx.random.seed(n)
    set_seed(n)


def profile():
    """How much data and how many epochs runs use here; ProfileError for an unknown profile."""
    return _profiles.profile(num_gpus())


def array(x):
    """The NumPy array ``x`` as MXNet's own on the CPU, of the same type."""
    return np.array(x, dtype=x.dtype, ctx=cpu())


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
    weights that are not k non-negative numbers summing to 1. Defined in chapters/scratch/mxnet.
    """
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} examples, y has {y.shape[0]}: give as many of each.")
    X_shards, y_shards, start = [], [], 0
    for size, device in zip(shard_sizes(X.shape[0], len(devices), weights), devices):
        X_shards.append(X[start : start + size].as_in_ctx(device))
        y_shards.append(y[start : start + size].as_in_ctx(device))
        start += size
    return X_shards, y_shards


def get_params(params, device):
    """A copy of ``params`` on ``device``, each with a gradient of its own that starts at zero.

    Defined in chapters/scratch/mxnet.
    """
    new_params = [p.copyto(device) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


def allreduce(data):
    """Replace each array in ``data`` (one a device, of one shape) by the sum of all, in place.

    Defined in chapters/scratch/mxnet.
    """
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].ctx)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


def lenet(X, params):
    """LeNet's outputs (n, 10) for images ``X`` (n, 1, 28, 28); ``params`` are W1, b1, … W4, b4.

    Shapes of W1 to W4: (20, 1, 3, 3), (50, 20, 5, 5), (800, 128), (128, 10). LeCun et al. (1998),
    with the ReLU and the sizes of Dive into Deep Learning (Zhang et al., 2023).
    Defined in chapters/scratch/mxnet.
    """
    h1 = npx.convolution(X, params[0], params[1], kernel=(3, 3), num_filter=len(params[1]))
    h1 = npx.pooling(npx.relu(h1), kernel=(2, 2), stride=(2, 2), pool_type="avg")
    h2 = npx.convolution(h1, params[2], params[3], kernel=(5, 5), num_filter=len(params[3]))
    h2 = npx.pooling(npx.relu(h2), kernel=(2, 2), stride=(2, 2), pool_type="avg")
    h3 = npx.relu(np.dot(h2.reshape(h2.shape[0], -1), params[4]) + params[5])
    return np.dot(h3, params[6]) + params[7]


def sgd(params, lr, batch_size):
    """One step of minibatch SGD, in place, on a list of parameters.

    Their gradients are of the loss *summed* over ``batch_size`` examples.
    """
    for p in params:
        p -= (lr / batch_size) * p.grad


def forward_backward(X, y, params):
    """Put the gradient of the loss, summed over one shard, into ``params``; return that loss.

    ``X`` (n, 1, 28, 28), ``y`` (n,), and LeNet's parameters on the same device. A device
    without data contributes zeros. Defined in chapters/scratch/mxnet.
    """
    if len(y) == 0:
        for p in params:
            p.grad[:] = 0
        return 0.0
    with autograd.record():
        loss = gluon.loss.SoftmaxCrossEntropyLoss()(lenet(X, params), y).sum()
    loss.backward()
    return loss


def train_batch(X, y, device_params, devices, lr):
    """One update of LeNet's replicas ``device_params`` (one list a device) on a global batch.

    ``X`` (n, 1, 28, 28) and ``y`` (n,) are on the CPU; ``lr`` scales the mean gradient of the n.
    Returns the losses, summed over each shard. Defined in chapters/scratch/mxnet.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    losses = parallel(forward_backward, X_shards, y_shards, device_params)
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


class Residual(nn.Block):
    """Residual block (He et al., 2016): two 3x3 convolutions beside the identity.

    ``use_1x1conv`` puts a 1x1 convolution on the shortcut, needed where the number of channels or
    the ``strides`` change the shape.
    """

    def __init__(self, num_channels, use_1x1conv=False, strides=1):
        super().__init__()
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, 1, strides=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

    def forward(self, X):
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return npx.relu(Y + (self.conv3(X) if self.conv3 else X))


def resnet18(num_classes, in_channels=1, width=64):
    """ResNet-18 for small images: 3x3 stem, no max-pooling; channels ``width`` to 8 ``width``.

    Maps (n, in_channels, 28, 28) to (n, num_classes). He et al. (2016).
    Defined in chapters/concise/mxnet.
    """
    net = nn.Sequential()
    net.add(
        nn.Conv2D(width, kernel_size=3, padding=1, in_channels=in_channels),
        nn.BatchNorm(),
        nn.Activation("relu"),
    )
    for stage in range(4):
        channels, strides = width * 2**stage, 1 if stage == 0 else 2
        net.add(Residual(channels, use_1x1conv=stage > 0, strides=strides), Residual(channels))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(num_classes))
    return net


# Accuracy


def accuracy(y_hat, y):
    """Number of correct predictions: ``y_hat`` (n, classes) or (n,), ``y`` (n,)."""
    if y_hat.ndim > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    if y_hat.shape != y.shape:  # they would be compared all with all
        raise ValueError(f"y_hat is for {tuple(y_hat.shape)} examples, y for {tuple(y.shape)}.")
    return float((y_hat.astype(y.dtype) == y).sum())


def evaluate_accuracy_gpu(net, data_iter, device=None):
    """Share of ``data_iter`` that ``net`` (a Block or a function) classifies right, on one device.

    ``device`` None: the first one that holds the parameters of ``net``.
    """
    if device is None:
        device = next(iter(net.collect_params().values())).list_ctx()[0]
    metric = Accumulator(2)
    for X, y in data_iter:
        X, y = X.as_in_ctx(device), y.as_in_ctx(device)
        metric.add(accuracy(net(X), y), len(y))
    return metric[0] / metric[1]


def evaluate_accuracy_gpus(net, data_iter):
    """Share of ``data_iter`` classified right, each image counted once, over all devices.

    Every device that holds the parameters of ``net`` takes its shard of each batch. Defined in
    chapters/concise/mxnet.
    """
    devices = next(iter(net.collect_params().values())).list_ctx()
    metric = Accumulator(2)

    def count(X, y):
        return accuracy(net(X), y) if len(y) else 0.0

    for X, y in data_iter:
        metric.add(sum(parallel(count, *split_batch(X, y, devices))), len(y))
    return metric[0] / metric[1]


def __getattr__(name):
    """Hand on d2l's pure helpers; what trains, loads data or picks devices is ours or raises."""
    return hand_on(name, "d2l.mxnet", __all__)
