"""Do the optimizers of a script learn anything: do gradients reach the parameters they hold?"""

import importlib
import weakref
from functools import wraps


class Learning:
    """For each optimizer that made updates:

    - ``where``: the line that made it; ``updates``: how many;
    - ``gradients``: "some" that are not zero, "zero" or "none" at all, in all of these;
    - ``frozen``: whether none of its parameters asks for a gradient; ``held``: how many it has;
    - ``foreign``: the dimensions of those that never got a gradient and are in no module that was
      called in training.

    And ``left_out``: (name, dimensions, whether it is newer than all optimizers) of parameters that
    get gradients and that no optimizer has.
    """

    def __init__(self, watch, facts):
        self.optimizers = {}
        self.net = {}
        self.reached = set()
        self.before = {}  # a parameter's id -> it, and how many optimizers there were before it
        facts.on_forward.append(self._forward)
        facts.on_optimizer.append(self._made)
        module = watch.torch.nn.Module
        register = module.register_parameter

        @wraps(register)
        def registered(instance, name, p):
            register(instance, name, p)
            known = self.before.get(id(p))
            if p is not None and (known is None or known[0]() is not p):
                self.before[id(p)] = weakref.ref(p), len(self.optimizers)

        module.register_parameter = registered
        hooks = importlib.import_module("torch.optim.optimizer")
        # A closure makes its gradients within a step, and others are dropped in one: look twice.
        hooks.register_optimizer_step_pre_hook(lambda optimizer, *_: self._look(optimizer, 0))
        hooks.register_optimizer_step_post_hook(lambda optimizer, *_: self._look(optimizer, 1))

    def _made(self, optimizer, where):
        new = {"where": where, "updates": 0, "gradients": "none", "kept": optimizer}
        self.optimizers[id(optimizer)] = new

    def _forward(self, module, args, kwargs):
        self.net |= {id(p): (name, p) for name, p in module.named_parameters()}

    def _look(self, optimizer, updates):
        entry, held = self.optimizers.get(id(optimizer)), _params(optimizer)
        if entry is None:  # a copy, which no line has made
            return
        entry["updates"] += updates
        self.reached |= {id(p) for p in held if p.grad is not None}
        self.reached |= {key for key, (_, p) in self.net.items() if p.grad is not None}
        grads = [p.grad for p in held if p.grad is not None]
        if grads and entry["gradients"] != "some":
            dense = (grad.coalesce().values() if grad.is_sparse else grad for grad in grads)
            entry["gradients"] = "some" if any(bool(grad.any()) for grad in dense) else "zero"

    def report(self) -> dict:
        used = [entry for entry in [*self.optimizers.values()] if entry["updates"]]
        held = {id(p) for optimizer in used for p in _params(optimizer["kept"])}
        left = [
            (name.removeprefix("module."), p.dim(), self._newest(p))
            for key, (name, p) in [*self.net.items()]
            if key in self.reached - held
        ]
        return {"optimizers": [self._report_of(optimizer) for optimizer in used], "left_out": left}

    def _newest(self, p):
        known, number = self.before.get(id(p), (lambda: None, 0))
        return known() is p and number == len(self.optimizers)

    def _report_of(self, entry):
        held = _params(entry["kept"])
        known = self.net.keys() | self.reached
        return {
            "where": entry["where"],
            "updates": entry["updates"],
            "gradients": entry["gradients"],
            "frozen": not any(p.requires_grad for p in held),
            "held": len(held),
            "foreign": [p.dim() for p in held if id(p) not in known],
        }


def _params(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]
