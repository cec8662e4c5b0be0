"""The public functions that both backends make from a few of their framework's own."""

import functools
import inspect
from statistics import median

from d2lmgpu.backend.arguments import need
from d2lmgpu.data.datasets import fashion_mnist, mnist
from d2lmgpu.data.loader import iterators
from d2lmgpu.machine import devices as machine
from d2lmgpu.machine import profiles
from d2lmgpu.machine.timing import Timer


def both_editions(fix_inputs):
    """Decorate a block's ``__init__(self, num_channels, …)``: it takes both of D2L's editions.

    One of them gives the number of input channels first, by position or as ``input_channels``.
    ``fix_inputs(block, channels)`` is called then. ArgumentError for what is no number of channels.
    """

    def decorate(init):
        @functools.wraps(init)
        def either(self, *args, **kwargs):
            inputs = kwargs.pop("input_channels", None)
            two = len(args) > 1 and not isinstance(args[1], bool)
            if two or (args and "num_channels" in kwargs):
                inputs, *args = args
            given = inspect.signature(init).bind(self, *args, **kwargs)
            given.apply_defaults()
            for name in ("num_channels", "strides"):
                need.whole(name, given.arguments[name])
            if inputs is not None:
                need.whole("input_channels", inputs)
            init(self, *args, **kwargs)
            if inputs is not None:
                fix_inputs(self, inputs)

        return either

    return decorate


def device_functions(checked, num_gpus, gpu_number, cpu_number):
    """``(gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile)`` of a framework."""

    @checked
    def gpu(i=0):
        """GPU number ``i``, whether or not it exists."""
        return gpu_number(i)

    @checked
    def cpu(i=0):
        """CPU device number ``i``: arrays moved to another number are copies."""
        return cpu_number(i)

    make = {"gpu": gpu, "cpu": cpu}

    def try_gpu(i=0):
        """Device ``i``: a GPU or, without any, a CPU device. DeviceError if too many.

        In a worker on one of several hosts ``i`` may be a rank there: each has its own device.
        """
        kind, number = machine.place(machine.on_this_host(i), num_gpus())
        return make[kind](number)

    def try_all_gpus():
        """All devices that there are, as a list; never empty."""
        return [make[kind](number) for kind, number in machine.places(num_gpus())]

    def devices(k):
        """The first ``k`` devices, as a list. DeviceError unless there are that many.

        With ``D2LMGPU_DEVICES=gpu:N`` several of them may be the same GPU, each with copies of its
        own from ``get_params``.
        """
        return [make[kind](number) for kind, number in machine.first(k, num_gpus())]

    def sharing(k):
        """How ``k`` devices share time here: 'one device', 'in parallel' or 'simulated'.

        DeviceError unless there are that many.
        """
        return machine.sharing(k, num_gpus())

    def profile():
        """How much data and how many epochs runs use here; ProfileError for an unknown profile."""
        return profiles.profile(num_gpus())

    return gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile


def loading_functions(profile, array):
    """``(load_data_fashion_mnist, load_data_mnist)`` of the framework with these arrays."""

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
        """MNIST, or handwritten digits that stand in for it (a printed line says so).

        Batches and errors are those of ``load_data_fashion_mnist``. The profile gives the most
        images that are used; the digits are fewer than that.
        """
        return iterators(mnist(), profile(), batch_size, resize, array)

    return load_data_fashion_mnist, load_data_mnist


def accuracy_function(cast):
    """``accuracy`` of the framework with this ``cast(array, dtype)``."""

    def accuracy(y_hat, y):
        """Number of correct predictions: ``y_hat`` (n, classes) or (n,), ``y`` (n,)."""
        if y_hat.ndim > 1 and y_hat.shape[1] > 1:
            y_hat = y_hat.argmax(1)
        if y_hat.shape != y.shape:  # they would be compared all with all
            raise ValueError(f"y_hat is for {tuple(y_hat.shape)} examples, y for {tuple(y.shape)}.")
        return float((cast(y_hat, y.dtype) == y).sum())

    return accuracy


def balancing_function(split_batch, get_params, synchronize):
    """``balance`` of the framework that splits, copies and waits so."""

    def balance(fn, X, y, params, devices, *per_device_args, weights=None):
        """Weights for ``split_batch`` that let all ``devices`` finish together, as measured.

        ``fn(X, y, params, …)`` is what a device does with its shard, as ``parallel`` would call it;
        each of ``per_device_args`` is a list with one entry a device. It runs on a copy of
        ``params``, on one device after the other and six times on each. The first time warms up; by
        the median of the rest a device has a speed in examples a second, and its weight is its
        part of all speeds.

        The batch is split by ``weights`` (None: evenly). A step has costs that do not shrink with
        the shard, so start with None and give the answer back once or twice. Raises ValueError
        where a device would have no example, and the errors of ``split_batch``.
        Defined in chapters/scaling/unequal-devices.
        """
        X_shards, y_shards = split_batch(X, y, devices, weights)
        if not all(len(shard) for shard in y_shards):
            raise ValueError(
                f"The shards have {[len(shard) for shard in y_shards]} examples. The speed of a "
                "device is measured on its shard: give each at least one, by a larger batch or "
                "other weights."
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

    return balance
