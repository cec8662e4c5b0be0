"""Norms of gradients: the line that takes one, and the line that sums one over the ranks."""

from functools import wraps

NEAR = {True: 1e-6, False: 1e-3}  # in float64 or not: a number that is this near is the norm


class Norms:
    """``taken`` and ``summed``: "file:line" of the first of each, or None.

    A number that is summed by hand is told from others by its value: it is the norm, or its
    square, that the gradients have just then.
    """

    def __init__(self, watch, facts, gradients):
        self.watch = watch
        self.torch = watch.torch
        self.gradients = gradients
        self.taken = self.summed = None
        facts.on_exchange.append(self._exchanged)
        torch = self.torch
        owners = {torch.Tensor: ["norm"], torch: ["norm", "_foreach_norm"]}
        owners[torch.linalg] = ["norm", "vector_norm"]
        for owner, names in owners.items():
            for name in names:
                setattr(owner, name, self._watched(getattr(owner, name)))

    def _watched(self, real):
        @wraps(real)
        def norm(*args, **kwargs):
            if self.taken is None and args and self.gradients.passes and self._of_one(args[0]):
                self.taken = self.watch.lines.where()
            return real(*args, **kwargs)

        return norm

    def _every(self):
        """The gradients as they are."""
        return [p.grad for p in self.gradients.hooked.values() if p.grad is not None]

    def _of_one(self, value):
        """Whether that is a gradient, or a list of some."""
        tensors = [value] if isinstance(value, self.torch.Tensor) else value
        places = {grad.data_ptr() for grad in self._every()}
        return bool(tensors) and all(t.data_ptr() in places for t in tensors)

    def _exchanged(self, collective):
        every = self._every()
        if self.summed or collective.operator != "allreduce" or not self.gradients.passes:
            return
        (tensor,) = collective.tensors[:1]
        if tensor.numel() > len(every) or self._of_one(tensor):
            return
        squares = [float(grad.double().square().sum()) for grad in every]
        value = tensor.detach().double()
        near = NEAR[self.watch.options["double"]]
        for number in (float(value.sum()), float(value.square().sum())):
            if any(abs(number - norm) < near * norm for norm in [*squares, sum(squares)]):
                self.summed = collective.where

    def report(self) -> dict:
        return {"norm": {"taken": self.taken, "summed": self.summed}}
