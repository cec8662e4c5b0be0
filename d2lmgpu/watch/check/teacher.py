"""One process is taught: before each update it gets the weights and the rates that rank 0 had.

So each update can be compared by itself, also after one that was not the same.
"""

import os


class Teacher:
    """In the run with one process. ``apart`` and ``moved``: how far its weights were from rank 0's
    before each update that it was taught, squared, and how far the update before had moved them."""

    def __init__(self, watch, facts, gradients, replay):
        self.torch = watch.torch
        self.gradients = gradients
        self.replay = replay
        self.own_lr = []
        self.apart = []
        self.moved = []
        self.taught = 0
        self.last = None
        self.fits = True
        facts.on_forward.append(self._teach)
        watch.steps.before.insert(0, self._set_rates)
        watch.steps.after.append(self._restore_rates)

    def _teach(self, module, args, kwargs):
        """Before the first forward pass of an update."""
        t, params = len(self.gradients.updates), [*self.gradients.hooked.values()]
        if t != self.taught or not params:
            return
        path = f"{self.replay['folder']}/kept-weights-{t}-0"
        weights = self.torch.load(path, weights_only=True) if os.path.exists(path) else []
        if [p.shape for p in params] != [w.shape for w in weights]:
            self.fits = bool(t)
            return
        self.taught += 1
        with self.torch.no_grad():
            if self.last:
                self.apart.append(_squared(params, weights))
                self.moved.append(_squared(params, self.last))
            for p, w in zip(params, weights):
                p.copy_(w)
        self.last = weights

    def _set_rates(self, optimizer):
        if optimizer is None:
            return
        t = len(self.own_lr)
        self.own_lr.append([float(group["lr"]) for group in optimizer.param_groups])
        if t < len(self.replay["lr"]):
            for group, lr in zip(optimizer.param_groups, self.replay["lr"][t]):
                group["lr"] = lr

    def _restore_rates(self, optimizer):
        if optimizer is not None:  # a schedule may go on from the rate that it has set
            for group, lr in zip(optimizer.param_groups, self.own_lr[-1]):
                group["lr"] = lr

    def report(self) -> dict:
        return {
            "own_lr": self.own_lr,
            "apart": self.apart,
            "moved": self.moved,
            "taught": self.taught,
            "fits": self.fits,
        }


def _squared(params, weights):
    """The squared distance of two lists of tensors."""
    return sum(float((p.double() - w.double()).square().sum()) for p, w in zip(params, weights))
