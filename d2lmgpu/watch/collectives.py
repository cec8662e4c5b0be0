"""Every collective of a process, seen at one place, whoever issues it.

The functions of torch.distributed, the buckets of DDP and the exchanges of FSDP and DTensor all end
in the operators of PyTorch's library ``c10d`` or ``_c10d_functional``, and sending and receiving
does, too. Each of these gets a kernel that runs before its own one; other operators run as ever.
"""

import os
import sys
from functools import cached_property, wraps
from itertools import chain

from d2lmgpu.process.hangs.calls import ANY, group_in_words
from d2lmgpu.process.hangs.log import PUBLIC

LIBRARIES = ("c10d", "_c10d_functional")
PEER = ("send", "recv", "recv_any_source")  # messages from one rank to another
_listeners = []
_kept = []  # a library takes its kernels with it


class Collective:
    """One collective, or the waiting for one. What needs the stack is there while it is going on.

    operator: its name in the library. tensors: those that it was given. waiting: whether it was
    issued before, and this waits for it.
    """

    def __init__(self, watch, operator, arguments=(), waiting=False):
        self._watch = watch
        self.arguments = arguments
        self.waiting = waiting
        self.operator = operator.strip("_")
        self.tensors = [*_tensors(arguments)]

    @property
    def bytes(self) -> int:
        """Of the larger side: what a rank puts in, or what it gets."""
        sides = (sum(t.numel() * t.element_size() for t in _tensors(x)) for x in self.arguments)
        return max(sides, default=0)

    @property
    def carries(self) -> bool:
        """Whether tensors begin to travel: it is no waiting, no barrier and no Python object."""
        return not self.waiting and "barrier" not in self.operator and "object" not in self.kind

    @cached_property
    def _frames(self):
        """(file, line, function) from the outside in, up to this package's kernel."""
        frame, frames = sys._getframe(1), []
        while frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back
        return [frame for frame in reversed(frames) if frame[0] != __file__]

    @property
    def where(self) -> str | None:
        """ "file:line" of the reader's code that has come to it; None if there is none."""
        return self._watch.lines.where([frame[:2] for frame in self._frames])

    @cached_property
    def _called(self):
        """The place among the frames of the function of torch.distributed that was called."""
        places = (i for i, frame in enumerate(self._frames) if os.path.basename(frame[0]) in PUBLIC)
        return next(places, None)

    @property
    def by_hand(self) -> bool:
        """Whether it was asked for outside of PyTorch: by no DDP, no FSDP, no optimizer of its."""
        if self._called is None:
            return False
        torch = os.path.dirname(self._watch.torch.__file__) + os.sep
        outside = (file for file, *_ in reversed(self._frames[: self._called]))
        caller = next((file for file in outside if not file.endswith("c10d_logger.py")), torch)
        return not caller.startswith(torch)

    @property
    def kind(self) -> str:
        """The function's name as one calls it; the operator's where PyTorch issues it by itself."""
        return self._frames[self._called][2] if self.by_hand else self.operator


def facts(torch, operator, arguments) -> tuple:
    """(name, tensors that this rank puts in, group, peer) of a call: see ``hangs.log.Log.note``."""
    name, dist = operator.strip("_"), torch.distributed
    group = next((dist.ProcessGroup.unbox(a) for a in arguments if _is_group(a)), None)
    flat = (a if isinstance(a, (list, tuple)) else [a] for a in arguments)
    tensors = next((a for a in flat if a and all(hasattr(t, "shape") for t in a)), [])
    peer = None
    if name in PEER:
        peer = arguments[2] if name != "recv_any_source" else ANY
    return name, tensors, group_in_words(dist, group), peer


def _is_group(value):
    name = "torch.classes.c10d.ProcessGroup"
    return type(value).__name__ == "ScriptObject" and value._type().qualified_name().endswith(name)


def replace_init(dist, new) -> None:
    """``init_process_group`` becomes ``new`` for scripts and for PyTorch's ``init_device_mesh``."""
    for module in (dist, dist.distributed_c10d, dist.device_mesh):
        module.init_process_group = new


def watch_collectives(watch, around) -> None:
    """From now on each ``Collective`` takes place within the context ``around(collective)``."""

    def begun(operator, arguments, waiting):
        context = around(Collective(watch, operator, arguments, waiting))
        context.__enter__()
        return lambda: context.__exit__(None, None, None)

    listen(watch.torch, begun)


def listen(torch, begun) -> None:
    """From now on call ``begun(operator, arguments, waiting)`` as each collective begins.

    What it returns, if anything, is called when that returns.
    """
    _listeners.append(begun)
    if len(_listeners) > 1 or not torch.distributed.is_available():
        return
    schemas = {schema.name for schema in torch._C._jit_get_all_schemas()}
    for namespace in LIBRARIES:
        library = torch.library.Library(namespace, "IMPL")
        _kept.append(library)
        for name in sorted(schemas):
            if name.startswith(namespace + "::"):
                _see(torch, library, namespace, name.split("::")[1])
    work = torch.distributed.Work
    work.wait = _waited(torch, work.wait)


def _see(torch, library, namespace, name):
    packet = getattr(getattr(torch.ops, namespace), name)
    operator = getattr(packet, packet.overloads()[0])

    def below(*args):
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*args)

    def noting(*args):
        return _announced((name, args, name == "wait_tensor"), below, args, {})

    library.impl(name, _uncompiled(torch, noting), "AutogradCPU")


def _waited(torch, real):
    @wraps(real)
    def wait(*args, **kwargs):
        return _announced(("wait", (), True), real, args, kwargs)

    return _uncompiled(torch, wait)


def _uncompiled(torch, function):
    """The function, which torch.compile leaves alone with all that it calls.

    DDP in a compiled network sends from within it, and a kernel in Python would be compiled, too.
    ``torch.compiler.disable`` would import the compiler, which takes seconds.
    """
    dynamo = torch._C._dynamo.eval_frame
    alone = dynamo._FrameExecStrategy(dynamo._FrameAction.SKIP, dynamo._FrameAction.SKIP)
    dynamo.set_code_exec_strategy(function.__code__, alone)
    return function


def _announced(call, real, args, kwargs):
    """Do it, told to all listeners."""
    after = [*filter(None, [begun(*call) for begun in _listeners])]
    try:
        return real(*args, **kwargs)
    finally:
        for ended in reversed(after):
            ended()


def _tensors(value):
    if hasattr(value, "element_size"):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from chain.from_iterable(map(_tensors, value))
