"""The code of a cell that trains the same again."""

import ast
import functools
import inspect
import os
import sys

from d2lmgpu.lab.functions import CONTROLS, KnownTrain
from d2lmgpu.machine.devices import VARIABLE


def cell(model) -> str:
    """Python that trains as the next run will, in the reader's own names; "" if there are none."""
    called = _source(model.function)
    settings = {name: getattr(model, name) for name in CONTROLS} | model.fixed
    if settings["num_epochs"] is None:
        del settings["num_epochs"]
    arguments = {name: _literal(value) for name, value in settings.items()}
    if called is None or None in arguments.values():
        return ""
    lines, name = called
    simulated = model.num_devices is not None and model.num_gpus > model.num_devices
    if simulated and (os.environ.get(VARIABLE) or "auto") in ("auto", "cpu"):
        value = f"cpu:{model.num_gpus}"
        lines = ["import os", *lines, f'os.environ["{VARIABLE}"] = "{value}"  # simulated']
    call = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return "\n".join([*lines, f"{name}({call})"])


def _source(fn):
    """(lines before, expression) that give ``fn`` in its notebook; None where no name does."""
    if isinstance(fn, KnownTrain):
        return fn.source()
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    home = getattr(inspect.unwrap(inner), "__globals__", None) or vars(sys.modules["__main__"])
    names = [name for name, value in list(home.items()) if value is fn]
    named = sorted(names, key=lambda name: (name != getattr(fn, "__name__", None), name))
    return ([], named[0]) if named and not named[0].startswith("_") else None


def _literal(value):
    """``value`` as it is written in Python; None where that is not known."""
    try:
        same = ast.literal_eval(repr(value)) == value
        return repr(value) if same is True else None
    except Exception:  # whatever a reader's value is, it has no literal
        return None
