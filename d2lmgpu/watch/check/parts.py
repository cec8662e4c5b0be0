"""What a rank holds of a network that is cut over ranks: its parts, their gradients, its losses.

In a run of its own, for ``by_parts``: a part of a parameter is no parameter of one device, so
nothing of ``gradients`` applies. Of a DTensor the part is what this rank holds locally; nothing is
sent for it.
"""

import io
from functools import wraps

import numpy as np

UPDATES = 6  # that are kept
MOST_BYTES = 512 << 20  # of a rank, in all


class Parts:
    """Keeps "parts-T" of each update: arrays, numbered in the order of the optimizer's groups:

    - ``before-I``, ``grads-I`` (where there is one) and ``after-I`` of parameter I;
    - ``terms``: of each whether its gradient is a term of a sum (a DTensor's "Partial").
    """

    def __init__(self, watch, facts):
        self.watch = watch
        self.torch = watch.torch
        self.facts = facts
        self.params = []
        self.updates = []
        self.arrays = {}
        self.loss = None
        self.bytes = 0
        watch.steps.before.append(self.before)
        watch.steps.after.append(self.after)
        self._watch_backward()

    def _watch_backward(self):
        backward = self.torch.Tensor.backward

        @wraps(backward)
        def passed(tensor, *args, **kwargs):
            if self.facts.depth:  # PyTorch calls it again, of a DTensor or in a checkpoint
                return backward(tensor, *args, **kwargs)
            self.facts.backward(self.watch.lines.where())
            if tensor.numel() == 1:
                self.loss = (self.loss or 0.0) + float(self._local(tensor.detach()))
            self.facts.depth += 1
            try:
                return backward(tensor, *args, **kwargs)
            finally:
                self.facts.depth -= 1

        self.torch.Tensor.backward = passed

    def _local(self, t):
        """What this rank holds of a tensor."""
        return t.to_local() if hasattr(t, "to_local") else t

    def _copies(self, name, tensors):
        local = {f"{name}-{i}": self._local(t) for i, t in enumerate(tensors) if t is not None}
        dense = ((key, t.to_dense() if t.is_sparse else t) for key, t in local.items())
        copies = {key: t.detach().double().cpu().numpy().copy() for key, t in dense}
        self.bytes += sum(array.nbytes for array in copies.values())
        return copies

    def before(self, optimizer) -> None:
        if optimizer is None:
            return
        groups = optimizer.param_groups
        self.params = self.params or [p for group in groups for p in group["params"]]
        grads = [p.grad for p in self.params]
        if len(self.updates) < UPDATES and self.bytes <= MOST_BYTES:
            self.arrays = self._copies("before", self.params) | self._copies("grads", grads)
            self.arrays["terms"] = np.array([_is_term(grad) for grad in grads])
        self.updates.append({"loss": self.loss, "lr": [float(group["lr"]) for group in groups]})
        self.facts.step(self.watch.lines.where())
        self.loss = None

    def after(self, optimizer) -> None:
        if optimizer is None or not self.arrays:
            return
        data = io.BytesIO()
        np.savez(data, **self.arrays, **self._copies("after", self.params))
        self.watch.keep(f"parts-{len(self.updates) - 1}", data.getvalue())
        self.arrays = {}

    def report(self) -> dict:
        double = all(p.dtype == self.torch.float64 for p in self.params)
        names = [self.facts.names.get(id(p), f"parameter {i}") for i, p in enumerate(self.params)]
        shapes = [[*self._local(p).shape] for p in self.params]
        return {
            "updates": self.updates,
            "names": names,
            "shapes": shapes,
            "double": double,
            "optimizers": self.watch.steps.optimizers,
        }


def _is_term(grad):
    """Whether a gradient is a DTensor of which each rank has a term."""
    return any(placement.is_partial() for placement in getattr(grad, "placements", ()))
