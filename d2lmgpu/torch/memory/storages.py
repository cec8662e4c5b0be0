"""Follow every storage of a training step, though no number is computed.

Under PyTorch's FakeTensorMode a tensor has its shape, type and storage, and no memory. A mode of
`torch.utils._python_dispatch` on top of it sees each operation, also those of the backward pass.
"""

import weakref
from collections.abc import Iterator
from itertools import count
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from d2lmgpu.memory.timeline import Event, Timeline


class NumberNeeded(Exception):
    """What runs looks at a number in a tensor, and a fake one has none."""


class FollowStorages(TorchDispatchMode):
    """Notes in ``timeline`` when each storage that an operation makes comes and goes.

    With ``answers`` a look at a number is answered by True or by ``number``, and counted in
    ``looked``; otherwise it raises NumberNeeded. ``counts`` says of a tensor whether it is one of
    those, and ``where`` which line of the reader's takes it.
    """

    def __init__(self, counts=lambda tensor: True, where=lambda: None):
        super().__init__()
        self.timeline = Timeline()
        self._counts, self._where = counts, where
        self.answers = False
        self.number = 1
        self.looked = 0
        self._alive = {}  # address of a storage -> (its number, its size, a weak reference)
        self._numbers = count()

    def __enter__(self):
        self._patch = mock.patch.object(torch.UntypedStorage, "resize_", self._resized())
        self._patch.start()
        return super().__enter__()

    def __exit__(self, *error):
        self._patch.stop()
        return super().__exit__(*error)

    def _resized(self):
        """What FSDP frees gathered layers by, which is no operation."""
        real = torch.UntypedStorage.resize_

        def resize_(storage, size):
            done = real(storage, size)
            if storage._cdata in self._alive:
                self._note(storage)
            return done

        return resize_

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default and self._counts(args[0]):
            return self._answer(args[0].dtype)
        result = func(*args, **(kwargs or {}))
        self._of(tree_leaves(result))
        return result

    def _of(self, values) -> list[int]:
        """The numbers of the storages of the tensors in ``values``; new ones are taken now."""
        counted = filter(self._counts, unwrapped(values))
        return [self._note(tensor.untyped_storage()) for tensor in counted]

    def _answer(self, dtype):
        if not self.answers:
            raise NumberNeeded
        self.looked += 1
        if dtype is torch.bool:
            return True
        return float(self.number) if dtype.is_floating_point else self.number

    def _note(self, storage) -> int:
        """The number of a storage; one that is new, or has another size, is taken now."""
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
        self.timeline.line[number] = self._where()
        return number

    def _gone(self, key, number):
        if self._alive.get(key, (None,))[0] == number:  # not yet resized, nor another's address
            _, size, _ = self._alive.pop(key)
            self.timeline.events.append(Event(number, size, False))

    def forget(self) -> None:
        """Begin anew, with what is there now."""
        self.timeline = Timeline()
        for number, size, _ in self._alive.values():
            self.timeline.events.append(Event(number, size, True))

    def alive(self) -> set[int]:
        """The numbers of all storages that are there."""
        return {number for number, _, _ in self._alive.values()}

    def name(self, part, tensors) -> None:
        """Say what the storages of ``tensors`` are for, unless that is known."""
        for number in self._of(tensors):
            self.timeline.part.setdefault(number, part)

    def name_since(self, before, part) -> None:
        """Say what all storages are for that were not in ``before``, of which it is not known."""
        for number in self.alive() - before:
            self.timeline.part.setdefault(number, part)

    def rename(self, part, tensors) -> None:
        """The same, whatever was known."""
        self.timeline.part |= dict.fromkeys(self._of(tensors), part)

    def name_rest(self, part) -> None:
        """Say what all storages are for of which it is not known."""
        self.name_since(set(), part)


def unwrapped(values) -> Iterator:
    """The tensors among ``values``; in place of one that wraps others (DTensor), those."""
    for value in values:
        if isinstance(value, torch.Tensor) and is_traceable_wrapper_subclass(value):
            yield from unwrapped(getattr(value, name) for name in value.__tensor_flatten__()[0])
        elif isinstance(value, torch.Tensor):
            yield value
