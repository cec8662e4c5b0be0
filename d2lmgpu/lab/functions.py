"""The reader's ``train``: what it uses, its newest definition, and whether the lab can run it."""

import functools
import inspect
import os
import pickle
import threading
import types
from collections.abc import Callable
from types import MappingProxyType

from d2lmgpu.lab.messages import Job
from d2lmgpu.machine.checks import Need, is_count, is_real
from d2lmgpu.process.sending import functions_of, pickled, rooms_of
from d2lmgpu.process.settings import TITLES, settings

NEEDED = ("num_gpus", "batch_size", "lr")
CONTROLS = (*NEEDED, "num_epochs")
LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
A_TRAIN = "a function train(num_gpus, batch_size, lr)"


class JobError(TypeError):
    """A function or an argument with which the lab cannot do its work."""


need = Need(JobError)


class KnownTrain:
    """A ``train`` whose code is elsewhere, so that it says itself what the lab must know.

    ``modules`` are those of 'torch', 'mxnet' and 'launch' that it uses; ``training`` is
    ``(network, framework)`` of its forecast, or None; ``version()`` is a hash of its code.
    ``source()`` is how a cell gets it, see ``lab.cell``: (lines before, expression), or None.
    """

    modules, training = (), None

    def source(self) -> None:
        return None


def name_of(fn) -> str:
    """What ``fn`` is called in a message."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__name__", type(fn).__name__)


def latest(fn) -> Callable:
    """``fn`` or, if its cell has been run again since, the function that now has its name."""
    if isinstance(fn, functools.partial):
        now = latest(fn.func)
        return fn if now is fn.func else type(fn)(now, *fn.args, **fn.keywords)
    name = getattr(fn, "__name__", None)
    if getattr(fn, "__qualname__", name) != name:
        return fn  # made inside another function: no cell defines it
    now = getattr(inspect.unwrap(fn), "__globals__", {}).get(name)
    if not isinstance(now, types.FunctionType) or now in functions_of(fn):
        return fn
    return now


def modules_of(fn) -> tuple:
    """Those of 'torch', 'mxnet' and 'launch' that the notebook of ``fn`` uses of this package."""
    if isinstance(fn, KnownTrain):
        return fn.modules
    rooms = rooms_of(fn)
    return tuple(name for name in (*TITLES, "launch") if f"d2lmgpu.{name}" in rooms)


def framework_of(fn) -> str | None:
    """'torch' or 'mxnet': the backend that the notebook of ``fn`` uses; None for neither."""
    return next((name for name in modules_of(fn) if name in TITLES), None)


def check_call(fn, arguments=NEEDED) -> MappingProxyType:
    """The parameters of ``fn``, by name; JobError unless a call with ``arguments`` trains."""
    need(callable(fn), "train", fn, A_TRAIN)
    name = name_of(fn)
    try:
        signature = inspect.signature(fn)
    except (ValueError, TypeError) as error:
        raise JobError(
            f"{name} does not say what it takes ({error}): write {A_TRAIN} that calls it."
        ) from None
    try:
        signature.bind(**dict.fromkeys(arguments))
    except TypeError as error:
        raise JobError(
            f"{name}{signature} cannot be called with {', '.join(arguments)}: {error}. "
            "The lab calls train(num_gpus, batch_size, lr), with num_epochs where train takes it; "
            "give what else it needs as TrainingLab(train, fixed={'name': value})."
        ) from None
    if any(runs_later(function) for runs_later in LATER for function in (fn, type(fn).__call__)):
        raise JobError(
            f"{name} is a generator or an async function: a call of it returns at once and trains "
            "nothing. The lab needs a function that has trained when it returns: without yield, "
            "and with asyncio.run(...) for what is async."
        )
    return signature.parameters


def check_decorated(chosen, now) -> None:
    """JobError if the lab was given a decorated train, and that cell was run again without it."""
    if hasattr(chosen, "__wrapped__") and not hasattr(now, "__wrapped__"):
        raise JobError(
            f"The lab was made with a decorated {name_of(now)}, and the cell that has been run "
            "again defines it without the decoration: run the cell that makes the lab again."
        )


def check_lab(trains, fixed, time_limit, chosen) -> None:
    """JobError unless a lab can be made of these."""
    several = f"at least one function, as {A_TRAIN} or a dict from names to such functions"
    need(isinstance(trains, dict) and trains, "train", trains, several)
    need.kind("fixed", fixed, dict)
    for what, names in (("The name of a function", trains), ("A name in fixed", fixed)):
        for name in names:
            need(isinstance(name, str), what, name, "a string")
    for fn in trains.values():
        check_call(fn, [*NEEDED, *fixed])
        if latest(fn) is not fn:
            raise JobError(
                f"Another function is called {name_of(fn)!r} by now: the lab runs whatever has "
                "that name when Run is pressed. Give each function a name of its own."
            )
    for name in chosen:
        need.choice("A setting of the lab", name, CONTROLS)
    for name in fixed:
        need(name not in CONTROLS, "A name in fixed", name, "it as a setting: the lab has a field")
    most = threading.TIMEOUT_MAX
    right = is_real(time_limit) and 0 < time_limit <= most
    need(right, "time_limit", time_limit, f"a number of seconds above 0 up to {most}")
    for name, value in chosen.items():
        if name == "lr":
            need(isinstance(value, (int, float)) and is_real(value), name, value, "a number")
        elif name != "num_epochs" or value is not None:
            right = isinstance(value, int) and is_count(value)
            need(right, name, value, "a whole number from 1 up")


def make_job(fn, arguments) -> bytes:
    """What a worker needs to call ``fn(**arguments)``; JobError for what cannot be sent."""
    environ = {name: value for name, value in os.environ.items() if name.startswith("D2LMGPU_")}
    call = pickled(fn, arguments, JobError)
    job: Job = {"call": call, "num_gpus": arguments.get("num_gpus"), **settings(environ)}
    return pickle.dumps(job)
