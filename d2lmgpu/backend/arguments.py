"""What the public functions of a backend take: the same rules in both frameworks."""

import functools
import inspect
from functools import partial
from itertools import pairwise

import numpy as np

from d2lmgpu.machine.checks import Need, is_count, is_list, is_real, is_whole
from d2lmgpu.machine.devices import DeviceError

# LeNet's parameters W1, b1, … W4, b4.
LENET_SHAPES = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]


class ArgumentError(ValueError):
    """A function was given something that it cannot work with."""


need = Need(ArgumentError)


def has_entries(value):
    """Whether ``value`` has a length and can be gone through, as a list, an array, a dictionary."""
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and getattr(value, "ndim", 1)


def is_numpy(value):
    """Whether ``value`` is a NumPy array of numbers or bools."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def holds(kind, array):
    """Whether an array of either framework has a type of that kind: 'float', 'int' or 'bool'."""
    return kind in str(array.dtype)


class Rules:
    """What an argument must be, by its name; and a method for each function with more to check.

    A framework's subclass gives its types ``Array`` and ``Device``, and: ``memory(array)`` is the
    first byte and the one after the last; ``place(array)`` its device; ``at_hand(array)`` its
    values in NumPy, or None where to read them is to wait for a GPU; ``recorded(array)`` whether
    automatic differentiation forbids to write it; ``exists(device)``.
    """

    def __init__(self):
        array = f"an array of the framework ({self.Array.__name__})"
        rules = [
            ("X y y_hat", self.is_array, array),
            ("params data", self.are_arrays, f"a list, each entry {array}"),
            ("device", self.is_device, "a device, as try_gpu(i) does"),
            ("devices", self.are_devices, "a list of devices, as devices(k) does"),
            ("device_params", is_list, "a list of replicas"),
            ("fn net", callable, "a function or a network"),
            ("data_iter", lambda value: hasattr(value, "__iter__"), "batches (X, y)"),
            ("x", is_numpy, "a NumPy array of numbers"),
            ("lr", is_real, "a finite number"),
            ("batch_size num_classes in_channels width", is_count, "a whole number from 1 up"),
            ("n", partial(is_whole, most=2**32 - 1), "a whole number from 0 to 2**32 - 1"),
            ("i", partial(is_whole, most=127), "a whole number from 0 to 127"),
        ]
        self.by_name = {name: rule for names, *rule in rules for name in names.split()}

    def checked(self, function):
        """``function``, its arguments checked first. ArgumentError names a wrong one."""
        signature, together = inspect.signature(function), getattr(self, function.__name__, None)
        rules = {name: self.by_name[name] for name in signature.parameters if name in self.by_name}
        defaults = {name: signature.parameters[name].default for name in rules}
        explain = getattr(self, f"{function.__name__}_failed", None)

        @functools.wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            for name, (right, allowed) in rules.items():
                if name in given and given[name] is not defaults[name]:
                    need(right(given[name]), name, given[name], allowed)
            if together:
                together(**given)
            if "data_iter" in given:
                given["data_iter"] = self.batches(given["data_iter"])
            try:
                return function(*bound.args, **bound.kwargs)
            except Exception:
                if explain:
                    explain(**given)
                raise

        return call

    def is_array(self, value):
        return isinstance(value, self.Array)

    def are_arrays(self, values):
        return is_list(values) and all(map(self.is_array, values))

    def is_device(self, value):
        right = isinstance(value, self.Device)
        if right and not self.exists(value):
            raise DeviceError(f"{value} is not here: take a device of try_all_gpus().")
        return right

    def are_devices(self, values):
        return is_list(values) and len(values) and all(map(self.is_device, values))

    def trainable(self, params):
        for i, p in enumerate(params):
            need(p.grad is not None, f"params[{i}].grad", None, "parameters of get_params")

    def apart(self, name, arrays):
        """No two of ``arrays`` may share memory."""
        ranges = sorted((str(self.place(array)), *self.memory(array)) for array in arrays)
        for (here, _, stop), (there, start, end) in pairwise(ranges):
            if here == there and start < min(stop, end):
                raise ArgumentError(
                    f"Two arrays of {name} share memory, so what is done to one is done to both: "
                    "give copies, one a device (get_params makes them)."
                )

    def batch(self, X, y):
        need(X.ndim and y.ndim, "X or y", 0, "arrays with an axis of examples, not one number")
        if len(X) != len(y):
            raise ArgumentError(f"X has {len(X)} examples, y has {len(y)}: give as many of each.")

    def batches(self, data_iter):
        """The batches of ``data_iter``, each checked, for a function that needs an example."""
        examples = 0
        for batch in data_iter:
            pair = self.are_arrays(batch) and len(batch) == 2
            need(pair, "A batch", batch, f"a pair (X, y) of {self.Array.__name__}")
            self.batch(*batch)
            examples += len(batch[1])
            yield batch
        if not examples:
            raise ArgumentError("data_iter has no examples: give at least one batch of (X, y).")

    def labeled(self, X, y):
        """A batch with labels of ten classes."""
        self.batch(X, y)
        whole = holds("int", y) and y.ndim == 1
        need(whole, "y", (tuple(y.shape), str(y.dtype)), "labels (n,) of an integer type")
        values = self.at_hand(y)
        if values is not None and len(values):
            ends = int(values.min()), int(values.max())
            need(ends[0] >= 0 and ends[1] < 10, "The range of y", ends, "labels from 0 to 9")

    def parallel(self, fn, per_device_args=(), lengths=()):
        for values in per_device_args:
            need(has_entries(values), "An argument of fn", values, "a list with one entry a device")
        lengths = [*lengths, *map(len, per_device_args)]
        same = "at least one list, each with one entry a device"
        need(len(set(lengths)) == 1, "The number of entries for fn", lengths, same)

    def split_batch(self, X, y, devices, weights=None):
        self.batch(X, y)

    def get_params(self, params, device):
        kinds = [str(p.dtype) for p in params if not holds("float", p)]
        need(not kinds, "The type of params", kinds, "arrays of a float type")

    def allreduce(self, data):
        need(len(data), "data", data, "a list with one array a device")
        kinds = {(tuple(array.shape), array.dtype) for array in data}
        need(len(kinds) == 1, "The shapes and types of data", list(kinds), "arrays of one of each")
        need(not holds("bool", data[0]), "data", str(data[0].dtype), "arrays of numbers")
        free = not any(map(self.recorded, data))
        need(free, "data", "being recorded", "gradients, or add up where nothing is recorded")
        self.apart("data", data)

    def lenet_failed(self, X, params):
        """Raise ArgumentError if the shapes, types or devices are why LeNet has failed."""
        shapes = [tuple(p.shape) for p in params]
        need(shapes == LENET_SHAPES, "The shapes of params", shapes, f"LeNet's {LENET_SHAPES}")
        right = tuple(X.shape[1:]) == (1, 28, 28)
        need(right, "The shape of X", tuple(X.shape), "images (n, 1, 28, 28)")
        kinds = sorted({f"{a.dtype} on {self.place(a)}" for a in (X, *params)})
        need(len(kinds) == 1, "X and params", kinds, "one type on one device")

    def forward_backward(self, X, y, params):
        self.labeled(X, y)
        self.trainable(params)

    def sgd(self, params, lr, batch_size):
        self.trainable(params)

    def train_batch(self, X, y, device_params, devices, lr):
        self.labeled(X, y)
        k = len(device_params)
        need(k == len(devices), "The number of replicas", k, f"{len(devices)}, one a device")
        for i, params in enumerate(device_params):
            right = self.are_arrays(params) and len(params) == len(LENET_SHAPES)
            need(right, f"device_params[{i}]", params, "a list of LeNet's 8 arrays")
            self.trainable(params)
        self.apart("device_params", [params[0] for params in device_params])

    def balance(self, fn, X, y, params, devices, per_device_args=(), weights=None):
        self.batch(X, y)
        self.parallel(fn, per_device_args, [len(devices)])
