"""Follow every storage of a training step, though no number is computed.

Under PyTorch's FakeTensorMode a tensor has its shape, type and storage, and no memory. A mode of
`torch.utils._python_dispatch` on top of it sees each operation, also those of the backward pass.
"""

import weakref
from itertools import count

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from d2lmgpu.memory.timeline import Event, Timeline


class NumberNeeded(Exception):
    """What runs looks at a number in a tensor, and a fake one has none."""


class FollowStorages(TorchDispatchMode):
    """Notes in ``timeline`` when each storage that an operation makes comes and goes.

    With ``answers`` a look at a number is answered by True or 1 and counted in ``looked``;
    otherwise it raises NumberNeeded.
    """

    def __init__(self):
        super().__init__()
        self.timeline = Timeline()
        self.answers, self.looked = False, 0
        self._alive = {}  # address of a storage -> (its number, its size, a weak reference)
        self._numbers = count()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._answer(args[0].dtype)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.note(tensor)
        return result

    def _answer(self, dtype):
        if not self.answers:
            raise NumberNeeded
        self.looked += 1
        return True if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1

    def note(self, tensor) -> int:
        """The number of the tensor's storage; one that is new, or has grown, is taken now."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive:
            number, known, _ = self._alive[key]
            if known == size:
                return number
            self._gone(key, number)
        number = next(self._numbers)
        gone = weakref.ref(storage, lambda _: self._gone(key, number))
        self._alive[key] = number, size, gone
        self.timeline.events.append(Event(number, size, True))
        return number

    def _gone(self, key, number):
        if self._alive.get(key, (None,))[0] == number:  # not yet resized, nor another's address
            _, size, _ = self._alive.pop(key)
            self.timeline.events.append(Event(number, size, False))

    def forget(self):
        """Begin anew, as if nothing had been made."""
        self.timeline, self._alive = Timeline(), {}

    def alive(self) -> set[int]:
        """The numbers of all storages that are there."""
        return {number for number, _, _ in self._alive.values()}

    def name(self, part, tensors):
        """Say what the storages of ``tensors`` are for, unless that is known."""
        for tensor in tensors:
            self.timeline.part.setdefault(self.note(tensor), part)
