"""A reader's function on its way to another process: by value, with the globals that it uses."""

import functools
import inspect
import io
import types
from collections import ChainMap

import cloudpickle

NO_FILE = "<dynamic-code>"  # what cloudpickle 3.1.3 and later has for the file of a function


def _code(code):
    """As cloudpickle has it, but with its file: by that an error or a cause names its line."""
    make, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if part == NO_FILE else part for part in parts)


_TABLE = ChainMap({types.CodeType: _code}, cloudpickle.Pickler.dispatch_table)


class _Pickler(cloudpickle.Pickler):
    dispatch_table = _TABLE


def _dumps(value):
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def pickled(fn, arguments, error=TypeError):
    """``(fn, arguments)`` as bytes, where ``arguments`` maps names or numbers to values.

    Raises ``error`` that names what cannot be sent: an argument, or a global that ``fn`` uses.
    """
    try:
        return _dumps((fn, arguments))
    except Exception as reason:
        given = fn.keywords | arguments if isinstance(fn, functools.partial) else arguments
        things = {f"The argument {name!r}": value for name, value in given.items()}
        name, value = _unpicklable(things, fn, []) or ("The function", fn)
        raise error(
            f"{name} is of type {type(value).__name__} and cannot be sent to another process "
            f"({reason}). Make it inside the function, or use numbers, arrays or names."
        ) from reason


def _unpicklable(things, fn, seen):
    """``(name, value)`` of the first of ``things``, or of what ``fn`` uses, that cannot be sent."""
    seen.append(fn)
    for function in functions_of(fn):
        closure = inspect.getclosurevars(function)
        for name, value in (closure.globals | closure.nonlocals).items():
            things[f"{name!r}, which {function.__name__} uses,"] = value
    for name, value in things.items():
        try:
            cloudpickle.dumps(value)
        except Exception:
            if not isinstance(value, types.FunctionType):
                return name, value
            if not any(value is one for one in seen):
                return _unpicklable({}, value, seen)
    return None


def functions_of(fn):
    """All functions that ``fn`` is made of, from the outside in.

    A partial, a method, a callable object and a decorator each hold another function, the decorator
    in its closure if it does not tell by ``__wrapped__``. A class trains in its ``__init__``.
    """
    functions, seen = [], []
    queue = [fn.__init__ if isinstance(fn, type) else fn]
    while queue:
        value = queue.pop(0)
        if not callable(value) or isinstance(value, type) or any(value is one for one in seen):
            continue
        seen.append(value)
        if isinstance(value, types.FunctionType):
            functions.append(value)
            cells = [cell for cell in value.__closure__ or () if cell != types.CellType()]
            queue += [cell.cell_contents for cell in cells]  # which may be empty yet
        elif isinstance(value, functools.partial):
            queue += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, types.MethodType):
            queue += [value.__func__, value.__self__]
        else:
            queue.append(type(value).__call__)
        queue += getattr(value, "__dict__", {}).values()
    return functions


def rooms_of(fn):
    """The rooms of this package, as "d2lmgpu.torch", of which the notebook of ``fn`` has names."""
    rooms = set()
    for function in functions_of(fn):
        for value in function.__globals__.values():
            is_module = isinstance(value, types.ModuleType)
            name = value.__name__ if is_module else getattr(value, "__module__", None)
            rooms.add(".".join(str(name).split(".")[:2]))
    return rooms
