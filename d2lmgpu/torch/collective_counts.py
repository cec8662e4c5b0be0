"""The collectives of a step and their bytes, counted as they are issued."""

from collections import Counter

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Counted(TorchDispatchMode):
    """Counts collectives, and the bytes of what is summed, gathered or exchanged.

    A context: what is issued within it is counted. Defined in chapters/beyond/tensor-parallel.

    Attributes
    ----------
    calls : collections.Counter
        The operator's name in PyTorch's libraries c10d or _c10d_functional -> how often.
    bytes : int
        Of the larger side of each, what a rank puts in or what it gets, summed up.
    """

    KINDS = "reduce", "gather", "alltoall", "all_to_all"

    def __init__(self):
        super().__init__()
        self.calls, self.bytes = Counter(), 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented  # first its own operations, then we
        result = op(*args, **(kwargs or {}))
        name = op.name().split("::")[1].strip("_")
        if "c10d" in op.namespace and any(kind in name for kind in self.KINDS):
            self.calls[name] += 1
            self.bytes += max(
                sum(t.nbytes for t in tree_leaves(each) if torch.is_tensor(t))
                for each in (*args, result)
            )
        return result
