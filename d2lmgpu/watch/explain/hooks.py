"""PyTorch's own doors: each tells which part of a step is going on, and what goes through."""

import zlib
from collections import Counter
from contextlib import contextmanager
from functools import wraps

from d2lmgpu.process.step_parts import (
    BACKWARD,
    EVALUATING,
    EXCHANGING,
    FORWARD,
    LOADING,
    UPDATE,
)
from d2lmgpu.watch.collectives import watch_collectives

PRINTED = 64  # values of an input of which a fingerprint is taken


class Hooks:
    """Counts of what the thread of the steps did, for as long as ``counting`` is true."""

    def __init__(self, watch, parts):
        self.watch = watch
        self.parts = parts
        self.counting = False
        self.calls = {}  # (kind, line) -> [calls, bytes, seconds with a core or blocked, blocked]
        self.rows = 0
        self.elements = 0
        self.exchanging = 0
        self.backwards = 0
        self.prints = []
        self.loaders = []
        self.ddp = []
        self.data_parallel = None
        self.batches = Counter()
        self.depth = 0
        self.inside = False
        self.exchanged, self.issued = 0, None  # bytes; the call that is waited for
        self.first = {}  # a part -> the line from which it was entered first
        torch = watch.torch
        self._forward(torch)
        self._backward(torch)
        self._update(torch)
        self._loading(torch)
        self._networks(torch)
        watch_collectives(watch, self._exchanging)

    def _forward(self, torch):
        modules = torch.nn.modules.module

        def before(module, args):
            if not self.parts.in_steps_thread():
                return
            self.depth += 1
            if self.depth == 1:
                training = torch.is_grad_enabled()
                self.parts.enter(FORWARD if training else EVALUATING)
                if training:
                    self._note_rows(args)

        def after(module, args, output):
            if self.parts.in_steps_thread():
                self.depth -= 1
                if not self.depth:
                    self.parts.leave()

        modules.register_module_forward_pre_hook(before)
        modules.register_module_forward_hook(after, always_call=True)

    def _note_rows(self, args):
        tensor = next((a for a in args if hasattr(a, "shape") and len(a.shape)), None)
        if tensor is None or not self.counting:
            return
        self._note_line(FORWARD)
        self.rows += tensor.shape[0]
        self.elements += tensor.numel()
        if len(self.prints) < 40:
            some = tensor.detach().flatten()[:PRINTED].cpu().double().numpy().tobytes()
            self.prints.append(zlib.crc32(some))

    def _note_line(self, part):
        if part not in self.first:
            self.first[part] = self.watch.lines.where()

    def _backward(self, torch):
        real = torch.Tensor.backward

        @wraps(real)
        def backward(tensor, *args, **kwargs):
            if not self.parts.in_steps_thread():
                return real(tensor, *args, **kwargs)
            if self.counting:
                self._note_line(BACKWARD)
                self.backwards += 1
                self.exchanging += any(net.require_backward_grad_sync for net in self.ddp)
            with self.parts.within(BACKWARD):
                return real(tensor, *args, **kwargs)

        torch.Tensor.backward = backward

    def _update(self, torch):
        self.watch.steps.before.append(lambda _: self.parts.enter(UPDATE))
        self.watch.steps.after.insert(0, lambda _: self.parts.leave())

    def _loading(self, torch):
        data = torch.utils.data
        for cls in (
            data.dataloader._BaseDataLoaderIter,
            data.dataloader._SingleProcessDataLoaderIter,
            data.dataloader._MultiProcessingDataLoaderIter,
        ):
            if "__next__" in vars(cls):
                cls.__next__ = self._timed(cls.__next__, LOADING)
        make, iterate = data.DataLoader.__init__, data.DataLoader.__iter__

        @wraps(make)
        def made(loader, *args, **kwargs):
            line = self.watch.lines.where()
            make(loader, *args, **kwargs)
            self.loaders.append((loader, line))

        @wraps(iterate)
        def iterated(loader):
            self.batches[id(loader)] += 1
            return iterate(loader)

        data.DataLoader.__init__, data.DataLoader.__iter__ = made, iterated

    def _timed(self, real, part):
        @wraps(real)
        def timed(*args, **kwargs):
            if not self.parts.in_steps_thread():
                return real(*args, **kwargs)
            with self.parts.within(part):
                return real(*args, **kwargs)

        return timed

    def _networks(self, torch):
        parallel = torch.nn.parallel
        make, split = parallel.DistributedDataParallel.__init__, torch.nn.DataParallel.__init__

        @wraps(make)
        def made(net, *args, **kwargs):
            make(net, *args, **kwargs)
            self.ddp.append(net)

        @wraps(split)
        def divided(net, *args, **kwargs):
            self.data_parallel = self.watch.lines.where()
            split(net, *args, **kwargs)

        parallel.DistributedDataParallel.__init__ = made
        torch.nn.DataParallel.__init__ = divided

    @contextmanager
    def _exchanging(self, collective):
        if not self.parts.in_steps_thread() or self.inside:
            yield
            return
        if self.counting and not collective.waiting:
            self._issue(collective)
        self.inside, before = True, self.parts.now()
        try:
            with self.parts.within(EXCHANGING):
                yield
        finally:
            self.inside = False
            if self.counting and self.issued:
                self._charge(before, self.parts.now())

    def _issue(self, collective):
        """A collective begins: count it, and keep whom to charge with what it takes."""
        self.watch.recorded()
        if collective.carries and collective.operator not in ("broadcast", "scatter"):
            self.exchanged += collective.bytes
        self.issued = (collective.kind, collective.where) if collective.by_hand else None
        if self.issued:
            totals = self.calls.setdefault(self.issued, [0, 0, 0.0, 0.0])
            totals[0] += 1
            totals[1] += collective.bytes

    def _charge(self, before, after):
        wall, cpu, delay = (b - a for a, b in zip(before, after))
        totals = self.calls[self.issued]
        totals[2] += wall - delay
        totals[3] += max(0.0, wall - cpu - delay)
