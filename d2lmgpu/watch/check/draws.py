"""The random numbers that the reader's own lines draw: recorded at k ranks, replayed at one.

Only what a line of the reader's calls itself counts: a sampler's or a network's draws are their
own. What all ranks draw alike, one process is given, too. Of what differs it is given that of all
ranks at once (``"joined"``), or, where one process draws more often, that of one rank after the
other (``"in turn"``).
"""

import io
import os
import sys
from functools import wraps
from numbers import Number

import numpy as np

from d2lmgpu.watch.check.generators import NOISE, OTHERS, watch_generators

TORCH = ("randint", "randn", "rand", "randperm", "multinomial", "normal")
LARGE = 4 << 20  # bytes of a draw that is not kept: a data set, which all ranks draw alike
LEAST = 4096  # bytes as which a small one counts
MOST_BYTES = 64 << 20


class Draws:
    def __init__(self, watch, replay):
        self.watch, self.torch = watch, watch.torch
        self.recorded = {}
        self.numbers = {}
        self.bytes = 0
        self.lines = {}
        self.training, self.updates = 0, []  # draws so far, and when each update began
        self.how = replay and replay["draws"]
        self.ranks = self._read(replay) if self.how else []
        for name in TORCH:
            setattr(self.torch, name, self._watched(getattr(self.torch, name)))
        watch_generators(NOISE + OTHERS, lambda real, _: self._watched(real))
        watch.steps.before.append(lambda _: self.updates.append(self.training))

    def _read(self, replay):
        files = [f"{replay['folder']}/kept-draws-{rank}" for rank in range(replay["ranks"])]
        return [self.torch.load(file, weights_only=True) for file in files if os.path.exists(file)]

    def _watched(self, real):
        chooses = getattr(real, "__module__", None) == "random" and real.__name__ == "choice"

        @wraps(real)
        def drawn(*args, **kwargs):
            value = real(*args, **kwargs)
            line = self._line(sys._getframe(1))
            # what is chosen of the reader's is no row of several that could be put together
            if not line or (chooses and not isinstance(value, Number)):
                return value
            # an evaluation, which rank 0 may do alone, does not shift what the training draws
            training = self.torch.is_grad_enabled()
            self.training += training
            key = f"{line} {training}"
            number = self.numbers[key] = self.numbers.get(key, -1) + 1
            return self._replayed(key, number, value) if self.how else self._kept(key, value)

        return drawn

    def _line(self, caller):
        """ "file:line" of the reader's, or None."""
        place = caller.f_code.co_filename, caller.f_lineno
        if place not in self.lines:
            self.lines[place] = self.watch.lines.where([place])
        return self.lines[place]

    def _kept(self, key, value):
        size = max(LEAST, _size(value))
        small = size <= LARGE and self.bytes + size <= MOST_BYTES
        held = self._tensor(value) if small else None
        self.bytes += 0 if held is None else size
        self.recorded.setdefault(key, []).append(held)
        return value

    def _tensor(self, value):
        """What was drawn as a tensor; None if it is of other things, or of too large numbers."""
        if isinstance(value, self.torch.Tensor):
            return value.detach().clone()
        array = np.array(value) if _all_numbers(value) else np.array(None)
        held = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8
        return self.torch.from_numpy(array) if held else None

    def _replayed(self, key, number, value):
        turns = len(self.ranks) if self.how == "in turn" else 1
        ranks = [rank.get(key, []) for rank in self.ranks]
        if any(number // turns >= len(rank) for rank in ranks):
            return value
        if self._alike(ranks):
            drawn = ranks[0][number] if number < len(ranks[0]) else None
            return value if drawn is None else _like(value, drawn)
        if turns > 1:
            drawn = ranks[number % turns][number // turns]
            return value if drawn is None else _like(value, drawn)
        parts = [rank[number] for rank in ranks]
        if any(part is None or not part.dim() for part in parts):
            return value
        return _like(value, self.torch.cat(parts))

    def _alike(self, ranks):
        """Whether all ranks have drawn the same, or what was not kept."""
        return all(
            any(draw is None for draw in draws) or all(self._equal(draws[0], d) for d in draws)
            for draws in zip(*ranks)
        )

    def _equal(self, a, b):
        return a.dtype == b.dtype and self.torch.equal(a, b)

    def report(self) -> dict:
        if self.recorded:
            data = io.BytesIO()
            self.torch.save(dict(self.recorded), data)
            self.watch.keep("draws", data.getvalue())
        return {"drawn": self.updates, "drawn_for": bool(self.how)}


def _size(value):
    """Bytes of what was drawn, about."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list):
        return 8 * len(value)
    return value.numel() * value.element_size() if hasattr(value, "element_size") else 8


def _all_numbers(value):
    values = value if isinstance(value, list) else [value]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return all(isinstance(number, Number) for number in values)


def _like(value, tensor):
    """What the tensor holds in the form in which ``value`` was drawn."""
    if isinstance(value, np.ndarray):
        return tensor.numpy().copy()
    if isinstance(value, list):
        return tensor.tolist()
    if isinstance(value, np.generic):
        return type(value)(tensor.item())
    return tensor.item() if isinstance(value, Number) else tensor
