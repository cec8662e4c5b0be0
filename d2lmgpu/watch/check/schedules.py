"""How far a learning-rate schedule is before each update: its own count of its steps."""

from functools import wraps


class Schedules:
    """Of the first scheduler that steps in training: ``where`` it does, ``counts`` and ``base``."""

    def __init__(self, watch, facts):
        self.where = None
        self.counts = []
        self.first = None
        scheduler = watch.torch.optim.lr_scheduler.LRScheduler
        step = scheduler.step

        @wraps(step)
        def stepped(instance, *args, **kwargs):
            if self.first is None and facts.trained:
                self.first, self.where = instance, watch.lines.where()
            return step(instance, *args, **kwargs)

        scheduler.step = stepped
        watch.steps.before.append(self._update)

    def _update(self, optimizer):
        self.counts.append(self.first.last_epoch if self.first else None)

    def report(self) -> dict:
        base = float(self.first.base_lrs[0]) if self.first else None
        return {"schedule": {"where": self.where, "counts": self.counts, "base": base}}
