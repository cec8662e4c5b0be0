"""What is sent to a worker: the function as the reader has just edited it, and its arguments."""

import inspect
import os
import sys
import types
from hashlib import sha256

import cloudpickle

TITLES = {"torch": "PyTorch", "mxnet": "MXNet"}
NEEDED = ("num_gpus", "batch_size", "lr")
CONTROLS = (*NEEDED, "num_epochs")


class JobError(TypeError):
    """A function or an argument with which the lab cannot do its work."""


def latest(fn):
    """``fn`` or, if its cell has been run again since, the function that now has its name."""
    name = getattr(fn, "__name__", None)
    if getattr(fn, "__qualname__", name) != name:
        return fn  # made inside another function: no cell defines it
    now = globals_of(fn).get(name)
    return now if isinstance(now, types.FunctionType) else fn


def check_call(fn, arguments=NEEDED):
    """The parameters of ``fn``, by name; JobError unless it can be called with ``arguments``."""
    if not callable(fn):
        raise JobError(f"The lab needs a function train(num_gpus, batch_size, lr), not {fn!r}.")
    signature, name = inspect.signature(fn), getattr(fn, "__name__", "train")
    try:
        signature.bind(**dict.fromkeys(arguments))
    except TypeError as error:
        raise JobError(
            f"{name}{signature} cannot be called with {', '.join(arguments)}: {error}. "
            "The lab calls train(num_gpus, batch_size, lr), with num_epochs where train takes it; "
            "give what else it needs as TrainingLab(train, fixed={'name': value})."
        ) from None
    return signature.parameters


def check_lab(trains, fixed, time_limit, settings):
    """JobError unless a lab can be made of these."""
    if not trains:
        raise JobError("The lab needs at least one function train(num_gpus, batch_size, lr).")
    for fn in trains.values():
        check_call(fn, [*NEEDED, *fixed])
        if latest(fn) is not fn:
            raise JobError(
                f"Another function is called {fn.__name__!r} by now: the lab runs whatever has "
                "that name when Run is pressed. Give each function a name of its own."
            )
    if wrong := sorted(set(settings) - set(CONTROLS)):
        raise JobError(f"{', '.join(wrong)}: the lab's settings are {', '.join(CONTROLS)}.")
    if wrong := sorted(set(fixed) & set(CONTROLS)):
        raise JobError(f"fixed: the lab has a field for {', '.join(wrong)}; give it as a setting.")
    if not isinstance(time_limit, (int, float)) or not time_limit > 0:
        raise JobError(f"time_limit={time_limit!r}: give a number of seconds above 0.")


def modules_of(fn):
    """Those of 'torch', 'mxnet' and 'launch' that the notebook of ``fn`` uses of this package."""
    if hasattr(fn, "modules"):
        return fn.modules
    values = globals_of(fn).values()
    used = {getattr(value, "__module__", None) for value in values}
    used |= {value.__name__ for value in values if isinstance(value, types.ModuleType)}
    return tuple(name for name in (*TITLES, "launch") if f"d2lmgpu.{name}" in used)


def framework_of(fn):
    """'torch' or 'mxnet': the backend that the notebook of ``fn`` uses; None for neither."""
    return next((name for name in modules_of(fn) if name in TITLES), None)


def make_job(fn, arguments):
    """The bytes from which a worker calls ``fn(**arguments)``, in the settings of this notebook.

    Raises JobError that names what cannot be sent to another process.
    """
    environ = {name: value for name, value in os.environ.items() if name.startswith("D2LMGPU_")}
    try:
        job = {"function": cloudpickle.dumps(fn), "arguments": arguments}
        return cloudpickle.dumps(job | {"environ": environ, "path": sys.path})
    except Exception as error:
        what = unpicklable(fn, arguments) or f"The run cannot be sent to its process: {error}"
        raise JobError(what) from None


def unpicklable(fn, arguments, seen=()):
    """The first thing that ``fn`` is given or uses and that cannot be sent, in words."""
    things = [(f"The argument {name!r}", value) for name, value in arguments.items()]
    if isinstance(fn, types.FunctionType):
        closure = inspect.getclosurevars(fn)
        used = [*closure.globals.items(), *closure.nonlocals.items()]
        things += [(f"{name!r}, which {fn.__name__} uses,", value) for name, value in used]
    for name, value in things:
        try:
            cloudpickle.dumps(value)
        except Exception:
            if isinstance(value, types.FunctionType):
                if value in seen or value is fn:
                    continue
                return unpicklable(value, {}, (*seen, fn))
            return (
                f"{name} is of type {type(value).__name__} and cannot be sent to the process in "
                "which a run happens. Make it inside the function, or use numbers, arrays or names."
            )
    return None


def version(fn):
    """A hash of the code of ``fn`` and of whatever in its notebook it uses: does an edit matter?"""
    if hasattr(fn, "version"):
        return fn.version()
    seen, parts = set(), []

    def visit(value):
        if isinstance(value, (bool, int, float, str)):
            return parts.append(repr(value))
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, types.CodeType):
            parts.append(value.co_code.hex())
            for const in value.co_consts:
                visit(const) if isinstance(const, types.CodeType) else parts.append(repr(const))
            parts.extend(value.co_names)
        elif isinstance(value, types.FunctionType) and value.__globals__ is globals_of(fn):
            visit(value.__code__)
            parts.append(repr((value.__defaults__, value.__kwdefaults__)))
            for name in names(value.__code__):
                visit(globals_of(fn).get(name))
        elif isinstance(value, type) and value.__module__ == fn.__module__:
            for member in vars(value).values():
                visit(getattr(member, "__func__", member))  # of a static or a class method
        elif isinstance(value, property):
            visit(value.fget)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                visit(item)
        elif isinstance(value, dict):
            for pair in value.items():
                visit(pair)

    visit(fn)
    return sha256("\n".join(parts).encode()).hexdigest()[:8]


def names(code):
    """The global names in ``code`` and in the functions within it."""
    inner = [names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return [*code.co_names, *(name for found in inner for name in found)]


def globals_of(fn):
    return getattr(fn, "__globals__", {})
