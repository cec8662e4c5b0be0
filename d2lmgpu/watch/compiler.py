"""PyTorch's compiler is imported when the script compiles, and not before.

An optimizer's step and DDP import ``torch._dynamo`` only in order to be left alone by it. It takes
as long as importing PyTorch does, in each process. As long as nobody else has imported it, there is
nothing to be left alone by, and its settings are as they come. What follows is private to PyTorch:
where a version has none of it, that version imports the compiler as it always has.
"""

import importlib
import sys
import types
from functools import partial, wraps

from d2lmgpu.watch.import_hook import once_imported

COMPILER = "torch._dynamo"
AS_IT_COMES = "ddp_optimizer"  # of its setting ``optimize_ddp``, which DDP asks for


def import_it_late() -> None:
    """To be called before PyTorch is imported; what is forked by a process that did has it."""
    if "torch" in sys.modules:
        return
    once_imported("torch._compile", partial(_replace, "_disable_dynamo", _disable))
    once_imported("torch.optim.optimizer", partial(_replace, "_use_grad_for_differentiable", _step))
    once_imported("torch.nn.parallel.distributed", _answer_ddp)


def _replace(name, made_of, module):
    if real := getattr(module, name, None):
        setattr(module, name, made_of(real))


def _disable(real):
    """In place of a decorator: the compiler, if it is there, does not look into the function."""

    @wraps(real)
    def disable(function=None, recursive=True):
        if function is None:
            return partial(disable, recursive=recursive)
        disabled = real(function, recursive)

        @wraps(function)
        def called(*args, **kwargs):
            return (disabled if COMPILER in sys.modules else function)(*args, **kwargs)

        return called

    return disable


def _step(real):
    """In place of the decorator of each optimizer's step: it is differentiable, or is not."""

    @wraps(real)
    def decorate(step):
        compiled = real(step)

        @wraps(step)
        def called(optimizer, *args, **kwargs):
            if COMPILER in sys.modules:
                return compiled(optimizer, *args, **kwargs)
            torch = sys.modules["torch"]
            with torch.set_grad_enabled(optimizer.defaults["differentiable"]):
                return step(optimizer, *args, **kwargs)

        return called

    return decorate


def _answer_ddp(module):
    if COMPILER not in sys.modules:
        module.torch._dynamo = _NotYetImported(COMPILER)


class _NotYetImported(types.ModuleType):
    """``torch._dynamo`` until somebody imports it, or wants more of it than DDP does."""

    def __init__(self, name):
        super().__init__(name)
        del self.__dict__["__spec__"], self.__dict__["__loader__"], self.__dict__["__package__"]
        self.__dict__["utils"] = _Utils(f"{name}.utils")

    def __getattr__(self, name):
        return getattr(importlib.import_module(COMPILER), name)

    def __setattr__(self, name, value):
        setattr(importlib.import_module(COMPILER), name, value)


class _Utils(types.ModuleType):
    def get_optimize_ddp_mode(self):
        if COMPILER in sys.modules:
            return importlib.import_module(self.__name__).get_optimize_ddp_mode()
        return AS_IT_COMES

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)
