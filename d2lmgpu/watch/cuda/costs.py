"""What a script does that costs on a GPU and nothing here: counted with its lines, never timed.

Why each costs: PyTorch's Performance Tuning Guide (docs.pytorch.org/tutorials/recipes/recipes/
tuning_guide.html) and its notes on CUDA semantics.
"""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator

from d2lmgpu.watch.cuda.device import replaced

WAITS = ("_local_scalar_dense", "nonzero")  # operators of PyTorch whose number the host waits for
TO_HOST = ("cpu", "tolist", "__repr__")
INSIDE = ("_tensor.py", "_tensor_str.py")  # files of PyTorch through which those go
OFTEN = 0.5  # times a step: what happens less often is no part of it
SENTENCES = {
    "wait": "the host waits for the GPU here, {times:.3g} a step",
    "pageable": "copies of its batches wait: pin_memory=True, and .cuda(non_blocking=True)",
    "no workers": "batches are made between two steps: num_workers=1 makes them beside",
    "DataParallel": "one process drives all GPUs: DistributedDataParallel has one for each",
    "unused": "each step looks for parameters without a gradient: needed only where there are any",
    "float32": "matrix products in full float32: torch.set_float32_matmul_precision('high') "
    "takes TF32, and autocast 16 bits",
}


class Costs:
    """Counts from the second update on, in the thread that trains."""

    def __init__(self, watch, device):
        self.watch, self.device = watch, device
        self.waits = Counter()
        self.facts = {}
        self.kept = []
        self.inside, self.mixed = False, False
        torch = watch.torch
        self._waits(torch)
        for owner, name, note in (
            (torch.utils.data.DataLoader, "__init__", self._loader),
            (torch.nn.DataParallel, "__init__", self._data_parallel),
            (torch.nn.parallel.DistributedDataParallel, "__init__", self._ddp),
            (torch.amp.autocast_mode.autocast, "__init__", self._autocast),
        ):
            replaced(owner, name, self._noting(note))
        watch.at_end(lambda: {"costs": self.costs()})

    def costs(self) -> list:
        """[what, "file:line", times a step or None] of a script that asks for GPUs, else none."""
        steps = self.watch.steps.number - 1
        if self.device.line is None or steps < 1:
            return []
        often = [(line, count / steps) for line, count in self.waits.most_common()]
        costs = [["wait", line, times] for line, times in often if times >= OFTEN]
        costs += [[what, line, None] for what, line in [*self.facts.items()]]
        high = self.watch.torch.get_float32_matmul_precision() == "highest"
        if high and not self.mixed and self.watch.torch.get_default_dtype().itemsize == 4:
            costs.append(["float32", None, None])
        return costs

    def _waits(self, torch):
        library = torch.library.Library("aten", "IMPL")
        self.kept.append(library)
        for name in WAITS:
            operator = getattr(torch.ops.aten, name).default

            def counting(*args, operator=operator):
                with self.waiting(), torch._C._AutoDispatchBelowAutograd():
                    return operator(*args)

            library.impl(name, counting, "AutogradCPU", allow_override=True)
        for name in TO_HOST:
            replaced(torch.Tensor, name, self._waiting)
        replaced(torch.Tensor, "__getitem__", self._masked)
        replaced(torch.Tensor, "__setitem__", self._masked)

    def _waiting(self, real):
        def waited(*args, **kwargs):
            with self.waiting():
                return real(*args, **kwargs)

        return waited

    def _masked(self, real):
        """How many rows a mask leaves is a number of the GPU's."""
        torch = self.watch.torch

        def indexed(tensor, index, *value):
            if isinstance(index, torch.Tensor) and index.dtype is torch.bool:
                with self.waiting():
                    return real(tensor, index, *value)
            return real(tensor, index, *value)

        return indexed

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """A wait of the host, unless it is part of another one."""
        outer, self.inside = self.inside, True
        if not outer and self.watch.steps.number and (line := self._line()):
            self.waits[line] += 1
        try:
            yield
        finally:
            self.inside = outer

    def _line(self):
        """The reader's line if it is that which waits, and not a library that it calls."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            ours = file in (__file__, contextlib.__file__)
            if not ours and os.path.basename(file) not in INSIDE:
                return self.watch.lines.where([(file, frame.f_lineno)])
            frame = frame.f_back
        return None

    def _noting(self, note):
        def made(real):
            def noted(instance, *args, **kwargs):
                note(*args, **kwargs)
                return real(instance, *args, **kwargs)

            return noted

        return made

    def _note(self, what):
        if line := self.watch.lines.where():
            self.facts.setdefault(what, line)

    def _loader(self, *args, num_workers=0, pin_memory=False, **kwargs):
        if not pin_memory:
            self._note("pageable")
        if not num_workers:
            self._note("no workers")

    def _data_parallel(self, *args, **kwargs):
        self._note("DataParallel")

    def _ddp(self, *args, find_unused_parameters=False, **kwargs):
        if find_unused_parameters:
            self._note("unused")

    def _autocast(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.mixed = self.mixed or (enabled and self.device.is_gpu(device_type))
