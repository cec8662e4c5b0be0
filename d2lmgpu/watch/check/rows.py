"""Which rows went into the net in each update: a hash of each, so that their order is free.

What goes in are the tensors that are given to a network, or to a loss, from outside: one that was
computed from weights is none of them. A row is what one index of the first dimension holds.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping

MOST = 100_000  # rows that are hashed; in the updates after that they are not known


class Rows:
    """For each of the first ``updates``: {argument: {hash of a row: how often it went in}}."""

    def __init__(self, watch, facts, updates):
        self.torch = watch.torch
        self.most = updates
        self.hashed = 0
        self.updates, self.current = [], defaultdict(Counter)
        facts.on_forward.append(self._forward)
        watch.steps.before.append(self._update)

    def _forward(self, module, args, kwargs):
        if len(self.updates) >= self.most or self.hashed > MOST:
            return
        name = type(_unwrapped(module)).__name__
        for key, tensor in _tensors((args, kwargs), self.torch, name):
            if tensor.dim() and not tensor.requires_grad:
                self.current[key].update(hashes(tensor))
                self.hashed += len(tensor)

    def _update(self, optimizer):
        if len(self.updates) < self.most and self.hashed <= MOST:
            self.updates.append({key: dict(rows) for key, rows in self.current.items()})
            self.current.clear()

    def report(self) -> dict[str, list]:
        return {"inputs": self.updates}


def _unwrapped(module):
    """The net in DistributedDataParallel, which one process may do without."""
    return module.module if type(module).__name__ == "DistributedDataParallel" else module


def _tensors(value, torch, key):
    if isinstance(value, torch.Tensor):
        yield key, value
    elif isinstance(value, (list, tuple, Mapping)):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in pairs:
            yield from _tensors(part, torch, f"{key}.{name}")


def hashes(tensor) -> list[str]:
    """A few letters for each row; of numbers that differ by rounding alone the same ones."""
    whole = tensor.detach().cpu()
    if whole.is_complex() or whole.is_sparse:
        whole = whole.to_dense().abs()
    rows = (whole.float() if whole.is_floating_point() else whole.long()).numpy()
    if rows.ndim == 1:
        return [repr(row) for row in rows.tolist()]
    return [hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest() for row in rows]


def same(ranks, single) -> tuple[bool, int, int]:
    """(whether the rows of all ranks together are those of one process, how many are, of how many).

    ``ranks``: for each the rows of an update, as ``Rows`` reports them; ``single``: the same of the
    one process. What is equal on all of them, as a mask, is no data.
    """
    keys = {key for rank in ranks for key in rank} | set(single)
    common, total, shared = 0, 0, False
    for key in keys:
        every = [Counter(rank.get(key, {})) for rank in ranks]
        alone = Counter(single.get(key, {}))
        together = sum(every, Counter())
        if together == alone:
            shared = True
        elif all(rank == alone for rank in every):
            continue
        common += (together & alone).total()
        total += max(together.total(), alone.total())
    return shared and common == total, common, total
