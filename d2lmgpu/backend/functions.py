"""The public functions that both backends make from a few of their framework's own."""

import functools
import inspect
from collections.abc import Callable
from statistics import median

from d2lmgpu.backend.arguments import need
from d2lmgpu.data.datasets import fashion_mnist, mnist
from d2lmgpu.data.loader import iterators
from d2lmgpu.machine import devices as machine
from d2lmgpu.machine import profiles
from d2lmgpu.machine.timing import Timer


def both_editions(fix_inputs) -> Callable:
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
            call = inspect.signature(init).bind(self, *args, **kwargs)
            call.apply_defaults()
            for name in ("num_channels", "strides"):
                need.whole(name, call.arguments[name])
            if inputs is not None:
                need.whole("input_channels", inputs)
            init(self, *args, **kwargs)
            if inputs is not None:
                fix_inputs(self, inputs)

        return either

    return decorate


def device_functions(checked, num_gpus, gpu_number, cpu_number) -> tuple:
    """``(gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile)`` of a framework."""

    @checked
    def gpu(i=0):
        """GPU number ``i``, whether or not it exists.

        Parameters
        ----------
        i : int
            From 0 to 127.

        Returns
        -------
        torch.device or mxnet.Context

        Raises
        ------
        ArgumentError
            For another number.
        """
        return gpu_number(i)

    @checked
    def cpu(i=0):
        """CPU device number ``i``: arrays moved to another number are copies.

        Parameters
        ----------
        i : int
            From 0 to 127.

        Returns
        -------
        torch.device or mxnet.Context

        Raises
        ------
        ArgumentError
            For another number.
        """
        return cpu_number(i)

    make = {"gpu": gpu, "cpu": cpu}

    def try_gpu(i=0):
        """Device ``i``: a GPU or, without any, a CPU device; ``D2LMGPU_DEVICES`` may choose others.

        In a worker on one of several hosts ``i`` may be a rank there: each has its own device.

        Parameters
        ----------
        i : int
            From 0 up.

        Returns
        -------
        torch.device or mxnet.Context

        Raises
        ------
        DeviceError
            If there is no device ``i``, or if ``D2LMGPU_DEVICES`` is wrong.
        """
        kind, number = machine.place(machine.on_this_host(i), num_gpus())
        return make[kind](number)

    def try_all_gpus() -> list:
        """All devices that there are, as a list; never empty.

        Returns
        -------
        list of torch.device or mxnet.Context

        Raises
        ------
        DeviceError
            If ``D2LMGPU_DEVICES`` is wrong, or names GPUs where there are none.
        """
        return [make[kind](number) for kind, number in machine.places(num_gpus())]

    def devices(k) -> list:
        """The first ``k`` devices, as a list.

        With ``D2LMGPU_DEVICES=gpu:N`` several of them may be the same GPU, each with copies of its
        own from ``get_params``.

        Parameters
        ----------
        k : int
            From 1 up.

        Returns
        -------
        list of torch.device or mxnet.Context

        Raises
        ------
        DeviceError
            Unless there are that many.
        """
        return [make[kind](number) for kind, number in machine.first(k, num_gpus())]

    def sharing(k) -> str:
        """How ``k`` devices share time here: what the timings of a run on them are worth.

        Parameters
        ----------
        k : int
            From 1 up.

        Returns
        -------
        str
            'one device'; 'in parallel': timings are measurements; or 'simulated': devices take
            turns, so the arithmetic is exact, and no speedup can be read off.

        Raises
        ------
        DeviceError
            Unless there are that many.
        """
        return machine.sharing(k, num_gpus())

    def profile() -> profiles.Profile:
        """How much data and how many epochs runs use here.

        ``D2LMGPU_PROFILE`` chooses; without it, 'full' where there is a GPU, else 'quick'.
        ``D2LMGPU_IMAGES`` caps the images.

        Returns
        -------
        Profile

        Raises
        ------
        ProfileError
            If one of the two variables has a value that is not allowed.
        """
        return profiles.profile(num_gpus())

    return gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile


def loading_functions(profile, array) -> tuple:
    """``(load_data_fashion_mnist, load_data_mnist)`` of the framework with these arrays."""

    def load_data_fashion_mnist(batch_size, resize=None) -> tuple:
        """Fashion-MNIST, as much of it as the profile says, as ``(train_iter, test_iter)``.

        Parameters
        ----------
        batch_size : int
            Examples in each batch but the last one, which has the rest.
        resize : int, optional
            New side of the images, in pixels.

        Returns
        -------
        train_iter, test_iter : DataIter
            Of batches X (batch, 1, 28, 28) float32 in [0, 1] and y (batch,) int64, in memory, on
            the CPU. The training set is shuffled by seed, in each epoch anew.

        Raises
        ------
        ValueError
            For a batch below 1 or above the training images, and for a side below 1.
        DataError
            If the data is missing or wrong.

        References
        ----------
        Xiao, Rasul and Vollgraf (2017). Fashion-MNIST: a Novel Image Dataset for Benchmarking
        Machine Learning Algorithms. arXiv 1708.07747.
        """
        p = profile()
        data = fashion_mnist(p.num_train, p.num_test)
        return iterators(data, p, batch_size, resize, array)

    def load_data_mnist(batch_size, resize=None) -> tuple:
        """MNIST, or handwritten digits that stand in for it (a printed line says so).

        The profile gives the most images that are used; the digits are fewer than that.

        Parameters
        ----------
        batch_size : int
            Examples in each batch but the last one, which has the rest.
        resize : int, optional
            New side of the images, in pixels.

        Returns
        -------
        train_iter, test_iter : DataIter
            Of batches as ``load_data_fashion_mnist`` has them.

        Raises
        ------
        ValueError
            For a batch below 1 or above the training images, and for a side below 1.
        DataError
            If the data is missing or wrong.
        """
        return iterators(mnist(), profile(), batch_size, resize, array)

    return load_data_fashion_mnist, load_data_mnist


def accuracy_function(cast) -> Callable:
    """``accuracy`` of the framework with this ``cast(array, dtype)``."""

    def accuracy(y_hat, y) -> float:
        """Number of correct predictions.

        Parameters
        ----------
        y_hat : array, (n, classes) or (n,)
            Scores, of which the largest is the prediction, or the predictions themselves.
        y : array, (n,)
            Labels.

        Returns
        -------
        float
            From 0 to n.

        Raises
        ------
        ValueError
            If they are not for equally many examples.
        """
        if y_hat.ndim > 1 and y_hat.shape[1] > 1:
            y_hat = y_hat.argmax(1)
        if y_hat.shape != y.shape:  # they would be compared all with all
            raise ValueError(f"y_hat is for {tuple(y_hat.shape)} examples, y for {tuple(y.shape)}.")
        return float((cast(y_hat, y.dtype) == y).sum())

    return accuracy


def balancing_function(split_batch, get_params, synchronize) -> Callable:
    """``balance`` of the framework that splits, copies and waits so."""

    def balance(fn, X, y, params, devices, *per_device_args, weights=None):
        """Weights for ``split_batch`` that let all ``devices`` finish together, as measured.

        ``fn`` runs on a copy of ``params``, on one device after the other and six times on each.
        The first time warms up; by the median of the rest a device has a speed in examples a
        second, and its weight is its part of all speeds. A step has costs that do not shrink with
        the shard, so start without ``weights`` and give the answer back once or twice.
        Defined in chapters/scaling/unequal-devices.

        Parameters
        ----------
        fn : callable
            ``fn(X, y, params, …)`` is what a device does with its shard, as in ``parallel``.
        X : array, (n, …)
        y : array, (n,)
        params : list of array
        devices : list of torch.device or mxnet.Context
        *per_device_args : list
            Further arguments of ``fn``: each is a list with one entry a device.
        weights : list of float, optional
            By which the batch is split, as in ``split_batch``; evenly without them.

        Returns
        -------
        list of float
            One a device, summing to 1.

        Raises
        ------
        ValueError
            If a device would have no example, or if ``X`` and ``y`` are not of one length.
        CollectiveError
            For ``weights`` that ``split_batch`` refuses.
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
