"""The gradients of each update: each rank's own as autograd made them, and those that are used.

Of each parameter at most ``SAMPLE`` entries are looked at, the same on all ranks, and of all
parameters about ``ENTRIES``.
"""

import io
import math
from functools import partial, wraps

import numpy as np

SAMPLE, ENTRIES = 128, 20_000
MOST_BYTES = 512 << 20  # of weights that are kept for a run with one process
TAUGHT = 12  # updates whose weights are kept, if they are not too large
LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
)
ONE_TARGET_A_ROW = ("cross_entropy", "nll_loss")


class Gradients:
    """For each update, by parameter in the order of the optimizer's groups (samples, float64):

    - ``before``, ``after``: the weights; ``used``: the gradients that the optimizer got;
      ``unclipped``: the same before PyTorch's clipping;
    - ``own``: for each backward pass since they were zero, what autograd added to the gradients;
    - ``old``: the same of the backward pass before.
    """

    def __init__(self, watch, facts):
        self.watch = watch
        self.torch = watch.torch
        self.facts = facts
        self.params = []
        self.hooked = {}
        self.updates = []
        self.most = None
        self.passes = []
        self.old = None
        self.losses = []
        self.clipped = None
        watch.steps.before.append(self.before)
        watch.steps.after.append(self.after)
        self._hook_parameters()
        self._watch_backward()
        self._watch_losses()
        self._watch_clipping()

    def sample(self, tensor) -> np.ndarray:
        """The entries of a tensor that are looked at."""
        flat = (tensor.to_dense() if tensor.is_sparse else tensor).detach().reshape(-1)
        return flat[:: self._stride(flat)].double().cpu().numpy().copy()

    def _hook_parameters(self):
        optimizer = self.torch.optim.Optimizer
        make = optimizer.__init__

        @wraps(make)
        def made(instance, *args, **kwargs):
            result = make(instance, *args, **kwargs)
            params = [p for group in instance.param_groups for p in group["params"]]
            self.facts.new_optimizer(instance, params)
            self.most = self.most or max(8, min(SAMPLE, ENTRIES // len(params)))
            for p in params:
                if id(p) not in self.hooked and p.requires_grad and p.is_leaf:
                    p.register_hook(partial(self._arrived, id(p)))
                    self.hooked[id(p)] = p
            return result

        optimizer.__init__ = made

    def _arrived(self, key, grad):
        """Autograd adds ``grad`` to a parameter's gradient."""
        if self.passes:
            own, new = self.passes[-1]["own"], self.sample(grad)
            own[key] = own[key] + new if key in own else new

    def _watch_backward(self):
        backward = self.torch.Tensor.backward

        @wraps(backward)
        def passed(tensor, *args, **kwargs):
            if not any(p.grad is not None and bool(p.grad.any()) for p in self.hooked.values()):
                self.passes.clear()
            if self.passes:
                self.old = self.passes[-1]["own"]
            self.facts.backward(self.watch.lines.where())
            loss = float(tensor.detach()) if tensor.numel() == 1 else None
            noted_loss = self.losses[-1] if len(self.losses) == 1 else None
            rows = noted_loss["rows"] if noted_loss else self.facts.rows
            scale = (
                loss / noted_loss["mean"]
                if noted_loss and loss is not None and noted_loss["mean"]
                else None
            )
            self.passes.append({"own": {}, "rows": rows, "scale": scale, "batch": self.facts.batch})
            self.losses.clear()
            self.facts.depth += 1  # what a checkpoint computes again is no new pass
            try:
                return backward(tensor, *args, **kwargs)
            finally:
                self.facts.depth -= 1

        self.torch.Tensor.backward = passed

    def _watch_losses(self):
        functional = self.torch.nn.functional

        def watched(name, real):
            @wraps(real)
            def loss(input, target, *args, **kwargs):
                value = real(input, target, *args, **kwargs)
                if value.requires_grad:
                    self.facts.lines.setdefault("loss", self.watch.lines.where())
                    rows = _rows(name, input, target, kwargs)
                    whole = value.detach().sum().item()
                    mean = whole if kwargs.get("reduction", "mean") == "mean" else whole / rows
                    self.losses.append({"rows": rows, "mean": mean})
                return value

            return loss

        for name in LOSSES:
            setattr(functional, name, watched(name, getattr(functional, name)))

    def _watch_clipping(self):
        utils = self.torch.nn.utils

        def watched(real):
            @wraps(real)
            def clip(*args, **kwargs):
                whole = self._all(lambda p: p.grad)
                result = real(*args, **kwargs)
                changed = not np.array_equal(whole, self._all(lambda p: p.grad))
                self.clipped = {
                    "before": whole,
                    "where": self.watch.lines.where(),
                    "changed": changed,
                    "exchanges": self.facts.exchanges,
                }
                return result

            return clip

        for name in ("clip_grad_norm_", "clip_grad_value_"):
            real = watched(getattr(utils, name))
            setattr(utils, name, real)
            setattr(utils.clip_grad, name, real)

    def _all(self, part):
        """A part of all parameters (a tensor each, or None) as one array."""
        params = self.params or list(self.hooked.values())
        parts = ((p, part(p)) for p in params)
        return np.concatenate(
            [np.zeros(self._size(p)) if t is None else self.sample(t) for p, t in parts]
        )

    def _stride(self, p):
        return max(1, math.ceil(p.numel() / self.most))

    def _size(self, p):
        return math.ceil(p.numel() / self._stride(p))

    def _own(self, own):
        return np.concatenate([own.get(id(p), np.zeros(self._size(p))) for p in self.params])

    def before(self, optimizer) -> None:
        if optimizer is None:
            return
        if not self.params:
            self.params = [p for group in optimizer.param_groups for p in group["params"]]
        self._keep_weights(len(self.updates))
        clip, used = self.clipped, self._all(lambda p: p.grad)
        late = bool(clip and clip["exchanges"] == self.facts.exchanges)
        self.updates.append(
            {
                "before": self._all(lambda p: p),
                "used": used,
                "unclipped": clip["before"] if clip and len(clip["before"]) == len(used) else used,
                "own": [self._own(p["own"]) for p in self.passes],
                "old": self._own(self.old or {}),
                "state": _has_state(optimizer),
                "lr": [float(group["lr"]) for group in optimizer.param_groups],
                "passes": [{k: p[k] for k in ("rows", "scale", "batch")} for p in self.passes],
                "clip": clip and {k: clip[k] for k in ("where", "changed")} | {"late": late},
            }
        )
        self.facts.step(self.watch.lines.where())
        if self.passes:
            self.old = self.passes[-1]["own"]
        self.clipped = None
        self.passes.clear()
        self.losses.clear()

    def after(self, optimizer) -> None:
        if optimizer is not None and self.updates and "after" not in self.updates[-1]:
            self.updates[-1]["after"] = self._all(lambda p: p)

    def _keep_weights(self, t):
        params = [*self.hooked.values()]
        size = sum(p.numel() * p.element_size() for p in params)
        if self.watch.group.rank == 0 and t < TAUGHT and size * (t + 1) <= MOST_BYTES:
            data = io.BytesIO()
            self.torch.save([p.detach() for p in params], data)
            self.watch.keep(f"weights-{t}", data.getvalue())

    def report(self) -> dict:
        whole = [update for update in self.updates if "after" in update]
        arrays = {
            f"{name}-{t}": update[name]
            for t, update in enumerate(whole)
            for name in ("before", "after", "used", "unclipped", "old")
        }
        arrays |= {
            f"own-{t}-{b}": own
            for t, update in enumerate(whole)
            for b, own in enumerate(update["own"])
        }
        data = io.BytesIO()
        np.savez(data, **arrays)
        if whole:  # else: perhaps the parent of the processes that train
            self.watch.keep("gradients", data.getvalue())
        plain = [
            {key: update[key] for key in ("lr", "passes", "clip", "state")} for update in whole
        ]
        double = all(p.dtype == self.torch.float64 for p in self.params)
        return {
            "updates": plain,
            "double": double,
            "sizes": [self._size(p) for p in self.params],
            "shapes": [[*p.shape] for p in self.params],
            "names": [
                self.facts.names.get(id(p), f"parameter {i}") for i, p in enumerate(self.params)
            ],
        }


def _has_state(optimizer):
    """Whether an optimizer remembers more of a parameter than a number."""
    values = (value for state in optimizer.state.values() for value in state.values())
    return any(getattr(value, "numel", int)() > 1 for value in values)


def _rows(name, input, target, kwargs):
    """What a mean is over: valid targets (or their weights), else entries."""
    if name not in ONE_TARGET_A_ROW or target.is_floating_point():
        return target.shape[0] if name in ONE_TARGET_A_ROW else input.numel()
    valid = target != kwargs.get("ignore_index", -100)
    if kwargs.get("weight") is not None:
        return kwargs["weight"][target[valid]].sum().item()
    return int(valid.sum())
