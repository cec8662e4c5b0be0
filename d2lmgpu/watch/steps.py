"""Counts the steps of a script that trains: updates of torch.optim, else backward passes."""

import importlib
import time
from functools import wraps


class ExternalSteps:
    """Steps of a framework whose calls are not watched: its observer calls ``step_ended()``."""

    def __init__(self):
        self.after = []
        self.number = 0
        self.backwards = 0
        self.optimizers = 0
        self.first = None
        self.done = 0

    def step_ended(self) -> None:
        """A step has ended."""
        self.number, self.first = self.number + 1, self.first or time.monotonic()
        for function in self.after:
            function(None)
        self.done += 1


class OptimizerSteps:
    """Calls ``before(optimizer)`` and ``after(optimizer)``, lists of functions, at each step.

    A step is an update by the first optimizer that updates. A script that makes no optimizer has a
    step from one backward pass to the next one: then both are called with None when that begins.
    ``done`` is the number of those for which both were called to the end.
    """

    def __init__(self, torch):
        self.before, self.after = [], []
        self.updates = 0
        self.done = 0
        self.backwards = 0
        self.first = None
        self.optimizers = 0
        self.leading = None
        self._passing = False
        optimizer = torch.optim.Optimizer
        make, backward = optimizer.__init__, torch.Tensor.backward

        @wraps(make)
        def made(instance, *args, **kwargs):
            self.optimizers += 1
            return make(instance, *args, **kwargs)

        @wraps(backward)
        def passed(tensor, *args, **kwargs):
            if self._passing:  # a mode of PyTorch's, as a default device is, calls it again
                return backward(tensor, *args, **kwargs)
            if not self.optimizers and self.backwards:
                self._step(None, self.before)
                self._ended(None)
            self.backwards += 1
            self._passing = True
            try:
                return backward(tensor, *args, **kwargs)
            finally:
                self._passing = False

        optimizer.__init__, torch.Tensor.backward = made, passed
        hooks = importlib.import_module("torch.optim.optimizer")
        hooks.register_optimizer_step_pre_hook(self._begin)
        hooks.register_optimizer_step_post_hook(lambda opt, *_: self._ended(opt))

    @property
    def number(self) -> int:
        """How many steps there were."""
        return self.updates if self.optimizers else max(self.updates, self.backwards)

    def _begin(self, optimizer, args, kwargs):
        """An update begins: with the gradients that a closure makes first, where there is one."""
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._step(optimizer, self.before)
            return None
        once = [self.before]

        @wraps(closure)
        def evaluated():
            loss = closure()
            for functions in once:
                self._step(optimizer, functions)
            once.clear()
            return loss

        return args[:1], kwargs | {"closure": evaluated}

    def _step(self, optimizer, functions):
        if self.leading is None:
            self.leading = optimizer
        if optimizer is self.leading:
            for function in functions:
                function(optimizer)

    def _ended(self, optimizer):
        if optimizer is self.leading:
            self.updates += 1
            if self.first is None:
                self.first = time.monotonic()
            self._step(optimizer, self.after)
            self.done += 1
