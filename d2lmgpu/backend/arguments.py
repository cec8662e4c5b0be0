"""What the public functions of a backend take: one registry for both frameworks."""

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


def has_entries(value) -> bool:
    """Whether ``value`` has a length and can be gone through, as a list, an array, a dictionary."""
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and getattr(value, "ndim", 1)


def is_numpy(value) -> bool:
    """Whether ``value`` is a NumPy array of numbers or bools."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def holds(kind, array) -> bool:
    """Whether an array of either framework has a type of that kind: 'float', 'int' or 'bool'."""
    return kind in str(array.dtype)


@dataclass(frozen=True)
class Rule:
    """What one argument must be: ``valid(value)``, and in words, as they follow "give"."""

    valid: Callable
    allowed: str
    convert: Callable | None = None  # what the function gets in place of the value; None: itself


@dataclass(frozen=True)
class Checks:
    """What a function takes. The three callables take its arguments by their names.

    ``arguments`` has a Rule for each parameter, or None where ``together`` or the function itself
    checks it. ``together`` raises where arguments do not fit each other; ``failed`` says why the
    function has failed, if it was for its arguments, and is asked only then.
    """

    arguments: dict[str, Rule | None]
    together: Callable | None = None
    failed: Callable | None = None


class Rules:
    """The checks of every public function, by its name: see ``registry``.

    A framework's subclass gives its types ``Array`` and ``Device``, and in words what ``NETWORK``
    has parameters, and: ``memory(array)`` is the first byte and the one after the last, once the
    array is computed; ``place(array)`` its device; ``values(array)`` its values in NumPy, or None
    where to read them is to wait for a GPU; ``recorded(array)`` whether automatic differentiation
    forbids to write it; ``exists(device)``; ``has_parameters(net)``.
    """

    def __init__(self):
        self.registry = self._registry()

    def _registry(self):
        """{name of a function: its Checks}."""
        name = f"an array of the framework ({self.Array.__name__})"
        array = Rule(self.is_array, name)
        arrays = Rule(self.are_arrays, f"a list, each entry {name}")
        device = Rule(self.is_device, "a device, as try_gpu(i) does")
        devices = Rule(self.are_devices, "a list of devices, as devices(k) does")
        replicas = Rule(is_list, "a list of replicas")
        code = Rule(callable, "a function or a network")
        batches = Rule(lambda value: hasattr(value, "__iter__"), "batches (X, y)", self.batches)
        count = Rule(is_count, "a whole number from 1 up")
        index = Rule(partial(is_whole, most=127), "a whole number from 0 to 127")
        seed = Rule(partial(is_whole, most=2**32 - 1), "a whole number from 0 to 2**32 - 1")
        rate = Rule(is_real, "a finite number")
        batch = {"X": array, "y": array}
        return {
            "gpu": Checks({"i": index}),
            "cpu": Checks({"i": index}),
            "seed": Checks({"n": seed}),
            "array": Checks({"x": Rule(is_numpy, "a NumPy array of numbers")}),
            "parallel": Checks({"fn": code, "per_device_args": None}, self.one_entry_a_device),
            "split_batch": Checks(batch | {"devices": devices, "weights": None}, self.same_length),
            "get_params": Checks({"params": arrays, "device": device}, self.of_floats),
            "allreduce": Checks({"data": arrays}, self.can_be_added_in_place),
            "sgd": Checks({"params": arrays, "lr": rate, "batch_size": count}, self.trainable),
            "lenet": Checks({"X": array, "params": arrays}, failed=self.not_of_lenet),
            "forward_backward": Checks(batch | {"params": arrays}, self.labeled_and_trainable),
            "train_batch": Checks(
                batch | {"device_params": replicas, "devices": devices, "lr": rate},
                self.a_replica_a_device,
            ),
            "balance": Checks(
                {"fn": code}
                | batch
                | {"params": arrays, "devices": devices, "per_device_args": None, "weights": None},
                self.can_be_balanced,
            ),
            "resnet18": Checks({"num_classes": count, "in_channels": count, "width": count}),
            "accuracy": Checks({"y_hat": array, "y": array}),
            "evaluate_accuracy_gpu": Checks(
                {"net": code, "data_iter": batches, "device": device}, self.on_one_device
            ),
            "evaluate_accuracy_gpus": Checks(
                {"net": code, "data_iter": batches}, self.on_all_devices
            ),
        }

    def checked(self, function) -> Callable:
        """``function``, its arguments checked first. ArgumentError names a wrong one.

        Raises TypeError for a function, or a parameter, that is not in the registry.
        """
        name, signature = function.__name__, inspect.signature(function)
        checks = self.registry.get(name)
        if checks is None or checks.arguments.keys() != signature.parameters.keys():
            raise TypeError(
                f"{name}{signature} has no checks: give each parameter a rule in Rules."
            )
        rules = {name: rule for name, rule in checks.arguments.items() if rule}
        defaults = {name: signature.parameters[name].default for name in rules}

        @functools.wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            arguments = bound.arguments
            for name, rule in rules.items():
                if name in arguments and arguments[name] is not defaults[name]:
                    need(rule.valid(arguments[name]), name, arguments[name], rule.allowed)
            if checks.together:
                checks.together(**arguments)
            for name, rule in rules.items():
                if rule.convert and name in arguments:
                    arguments[name] = rule.convert(arguments[name])
            try:
                return function(*bound.args, **bound.kwargs)
            except Exception:
                if checks.failed:
                    checks.failed(**arguments)
                raise

        return call

    def is_array(self, value) -> bool:
        """Whether ``value`` is an array of the framework."""
        return isinstance(value, self.Array)

    def are_arrays(self, values) -> bool:
        """Whether ``values`` is a list of arrays of the framework."""
        return is_list(values) and all(map(self.is_array, values))

    def is_device(self, value) -> bool:
        """Whether ``value`` is a device of the framework; DeviceError for one that is not here."""
        valid = isinstance(value, self.Device)
        if valid and not self.exists(value):
            raise DeviceError(f"{value} is not here: take a device of try_all_gpus().")
        return valid

    def are_devices(self, values) -> bool:
        """Whether ``values`` is a list of devices, and not an empty one."""
        return is_list(values) and len(values) and all(map(self.is_device, values))

    def have_gradients(self, params) -> None:
        """Raise ArgumentError for a parameter that no gradient belongs to."""
        for i, p in enumerate(params):
            need(p.grad is not None, f"params[{i}].grad", None, "parameters of get_params")

    def share_no_memory(self, name, arrays) -> None:
        """Raise ArgumentError if two of ``arrays`` have a byte in common."""
        by_place = defaultdict(list)
        for array in arrays:
            by_place[str(self.place(array))].append(array)
        for neighbours in by_place.values():
            if len(neighbours) == 1:
                continue  # to ask for its memory might be to wait for it
            ranges = sorted(map(self.memory, neighbours))
            if any(start < min(stop, end) for (_, stop), (start, end) in pairwise(ranges)):
                raise ArgumentError(
                    f"Two arrays of {name} share memory, so what is done to one is done to both: "
                    "give copies, one a device (get_params makes them)."
                )

    def same_length(self, X, y, **rest) -> None:
        """As many examples as labels."""
        need(X.ndim and y.ndim, "X or y", 0, "arrays with an axis of examples, not one number")
        if len(X) != len(y):
            raise ArgumentError(f"X has {len(X)} examples, y has {len(y)}: give as many of each.")

    def labeled(self, X, y) -> None:
        """A batch with labels of ten classes."""
        self.same_length(X, y)
        whole = holds("int", y) and y.ndim == 1
        need(whole, "y", (tuple(y.shape), str(y.dtype)), "labels (n,) of an integer type")
        values = self.values(y)
        if values is not None and len(values):
            ends = int(values.min()), int(values.max())
            need(ends[0] >= 0 and ends[1] < 10, "The range of y", ends, "labels from 0 to 9")

    def batches(self, data_iter) -> Iterator:
        """The batches of ``data_iter``, each checked, for a function that needs an example."""
        examples = 0
        for batch in data_iter:
            pair = self.are_arrays(batch) and len(batch) == 2
            need(pair, "A batch", batch, f"a pair (X, y) of {self.Array.__name__}")
            self.same_length(*batch)
            examples += len(batch[1])
            yield batch
        if not examples:
            raise ArgumentError("data_iter has no examples: give at least one batch of (X, y).")

    def one_entry_a_device(self, fn, per_device_args=(), lengths=()) -> None:
        """Raise ArgumentError unless all lists for ``fn`` have the same length."""
        for values in per_device_args:
            need(has_entries(values), "An argument of fn", values, "a list with one entry a device")
        lengths = [*lengths, *map(len, per_device_args)]
        same = "at least one list, each with one entry a device"
        need(len(set(lengths)) == 1, "The number of entries for fn", lengths, same)

    def of_floats(self, params, device) -> None:
        """Raise ArgumentError for parameters that are no fractions: they have no gradient."""
        kinds = [str(p.dtype) for p in params if not holds("float", p)]
        need(not kinds, "The type of params", kinds, "arrays of a float type")

    def can_be_added_in_place(self, data) -> None:
        """Raise ArgumentError unless arrays of one shape and type can be summed in place."""
        need(len(data), "data", data, "a list with one array a device")
        kinds = {(tuple(array.shape), array.dtype) for array in data}
        need(len(kinds) == 1, "The shapes and types of data", list(kinds), "arrays of one of each")
        need(not holds("bool", data[0]), "data", str(data[0].dtype), "arrays of numbers")
        free = not any(map(self.recorded, data))
        need(free, "data", "being recorded", "gradients, or add up where nothing is recorded")
        self.share_no_memory("data", data)

    def not_of_lenet(self, X, params) -> None:
        """Raise ArgumentError if the shapes, types or devices are why LeNet has failed."""
        shapes = [tuple(p.shape) for p in params]
        need(shapes == LENET_SHAPES, "The shapes of params", shapes, f"LeNet's {LENET_SHAPES}")
        images = tuple(X.shape[1:]) == (1, 28, 28)
        need(images, "The shape of X", tuple(X.shape), "images (n, 1, 28, 28)")
        kinds = sorted({f"{a.dtype} on {self.place(a)}" for a in (X, *params)})
        need(len(kinds) == 1, "X and params", kinds, "one type on one device")

    def trainable(self, params, lr, batch_size) -> None:
        """Parameters that an update can change."""
        self.have_gradients(params)

    def labeled_and_trainable(self, X, y, params) -> None:
        """A labeled batch, and parameters that an update can change."""
        self.labeled(X, y)
        self.have_gradients(params)

    def a_replica_a_device(self, X, y, device_params, devices, lr) -> None:
        """A labeled batch, and for each device LeNet's parameters in memory of their own."""
        self.labeled(X, y)
        k = len(device_params)
        need(k == len(devices), "The number of replicas", k, f"{len(devices)}, one a device")
        for i, params in enumerate(device_params):
            of_lenet = self.are_arrays(params) and len(params) == len(LENET_SHAPES)
            need(of_lenet, f"device_params[{i}]", params, "a list of LeNet's 8 arrays")
            self.have_gradients(params)
        self.share_no_memory("device_params", [params[0] for params in device_params])

    def can_be_balanced(self, fn, X, y, params, devices, per_device_args=(), weights=None) -> None:
        """As many examples as labels, and for each device an entry of every list."""
        self.same_length(X, y)
        self.one_entry_a_device(fn, per_device_args, [len(devices)])

    def on_one_device(self, net, data_iter, device=None) -> None:
        """Some networks of a framework say what they will not do."""

    def on_all_devices(self, net, data_iter) -> None:
        """A network with parameters, as one that is evaluated on all devices must be."""
        allowed = f"{self.NETWORK}, or use evaluate_accuracy_gpu"
        need(self.has_parameters(net), "net", net, allowed)
