"""A reader's function on its way to another process: by value, with the globals that it uses."""

import ast
import builtins
import dis
import functools
import inspect
import io
import linecache
import os
import sys
import types

from d2lmgpu.process import main_module
from d2lmgpu.process.main_module import MAIN, Pickler, name_in

ANY_NAME = {MAIN, "globals"}  # code with one of these may look up any name that it has as a text
# What has a reader's function in it.
HOLDERS = (functools.partial, types.MethodType, type(functools.lru_cache(len)))
# What IPython has put among a notebook's names -> what it is elsewhere.
INSTEAD = {
    "get_ipython": main_module.get_ipython,
    "input": main_module.nobody_to_ask,
    "exit": sys.exit,
    "quit": sys.exit,
}


class _Sending(Pickler):
    """From the caller's ``__main__`` to that of a worker, see ``main_module``.

    ``names``: what must be found there by its name. ``files``: those of the code that is sent,
    with the names in the annotations of their functions.
    """

    def __init__(self, file):
        super().__init__(file)
        self.main = sys.modules[MAIN]
        self.names = {}
        self.files = {}
        namespace = vars(self.main)
        attributes = {name: namespace[name] for name in main_module.ATTRIBUTES if name in namespace}
        self.globals_ref[id(namespace)] = main_module.Namespace(attributes)

    def reducer_override(self, obj):
        reduced = super().reducer_override(obj)
        if isinstance(reduced, tuple):  # it goes by value
            if name := name_in(self.main, obj):
                self.names.setdefault(name)
            if isinstance(obj, (type, types.FunctionType)):
                for annotation in inspect.get_annotations(obj).values():  # which gives obj none
                    if isinstance(annotation, str):
                        self._add(_evaluated(annotation))
            if isinstance(obj, types.FunctionType):
                file, line = obj.__code__.co_filename, obj.__code__.co_firstlineno
                if file not in self.files:
                    self.files[file] = _annotating(file) if _is_a_cell(file) else {}
                self._add(self.files[file].get(line, set()))
                if obj.__globals__ is vars(self.main) and not main_module.dispatches(obj):
                    self._see_to_globals(obj.__code__, reduced[2][1]["__globals__"])
        return reduced

    def _see_to_globals(self, code, used):
        """Add what cloudpickle does not see of the globals that ``code`` uses."""
        texts = _texts(code)
        if texts & ANY_NAME:
            self._add(texts)
        for name in texts:
            value = used.get(name, vars(builtins).get(name))
            if not _of_ipython(value):
                continue
            if name in INSTEAD:
                used[name] = INSTEAD[name]
            else:
                used.setdefault(name, value)  # ``display``, which Python itself has not

    def _add(self, texts):
        self.names.update(dict.fromkeys(vars(self.main).keys() & texts))


def _codes(code):
    """``code`` and that of the functions that it makes."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _texts(code):
    """All names and texts in ``code``."""
    texts = set()
    for part in _codes(code):
        texts.update(part.co_names, (text for text in part.co_consts if isinstance(text, str)))
    return texts


def _evaluated(annotation):
    """The names in an annotation that is a text: somebody may evaluate it."""
    try:
        return _texts(compile(annotation, "annotation", "eval"))
    except SyntaxError:
        return set()


def _annotating(file):
    """The names in the annotations of each function in ``file``, by its first line.

    They are no part of its code, but torch.jit looks at its source.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    names = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            arguments = [part for part in ast.walk(function.args) if isinstance(part, ast.arg)]
            annotations = [function.returns, *(part.annotation for part in arguments)]
            parts = [
                part for annotation in filter(None, annotations) for part in ast.walk(annotation)
            ]
            first = min(part.lineno for part in [*function.decorator_list, function])
            names[first] = {part.id for part in parts if isinstance(part, ast.Name)}
    return names


def _dumps(value):
    """``value``, what of the caller's ``__main__`` must go with it, and its cells' sources."""
    file = io.BytesIO()
    pickler = _Sending(file)
    pickler.dump(value)
    sent = {}
    while more := {name: vars(pickler.main)[name] for name in pickler.names if name not in sent}:
        pickler.dump(more)
        sent |= more
    pickler.dump({})
    pickler.dump({name: _kept(name) for name in pickler.files if _is_a_cell(name)})
    return file.getvalue()


def _of_ipython(value):
    """Whether IPython has made ``value``, or it is a method of its shell."""
    owner = getattr(value, "__self__", value)
    maker = owner if isinstance(owner, types.FunctionType) else type(owner)
    return str(maker.__module__).partition(".")[0] in ("IPython", "ipykernel")


def _is_a_cell(name):
    """Whether the lines of the file ``name`` are kept in memory only."""
    entry = linecache.cache.get(name, ())  # to which IPython 7 gives a time, later ones None
    return len(entry) == 4 and (entry[1] is None or not os.path.exists(name))


def _kept(name):
    """The entry of a cell for a ``linecache`` that is to keep it, whatever is on the disk."""
    size, _, lines, full_name = linecache.cache[name]
    return size, None, lines, full_name


def pickled(fn, arguments, error=TypeError) -> bytes:
    """``(fn, arguments)`` as bytes, where ``arguments`` maps names or numbers to values.

    ``main_module.received`` reads them. Raises ``error`` that names what cannot be sent, in the
    reader's words: an argument, or a variable that ``fn`` uses.
    """
    try:
        return _dumps((fn, arguments))
    except Exception as reason:
        keywords = fn.keywords | arguments if isinstance(fn, functools.partial) else arguments
        things = [("The argument {!r}", name, value) for name, value in keywords.items()]
        things.append(("{!r}", _called(fn), fn))
        words, value = _culprit(things)
        raise error(
            f"{words} is of type {type(value).__name__} and cannot be sent to another process "
            f"({reason}). Make it inside the function, or use numbers, arrays or names."
        ) from reason


def _called(fn):
    """What the caller's ``__main__`` calls ``fn``, else its own name."""
    names = [name for name, value in vars(sys.modules[MAIN]).items() if value is fn]
    return names[0] if names else getattr(fn, "__name__", type(fn).__name__)


def _refused(value):
    """Why ``value`` cannot be sent, None if it can."""
    try:
        _dumps(value)
    except Exception as reason:
        return reason
    return None


def _culprit(things):
    """In words the smallest part that cannot be sent of the first of ``things``, and that.

    They are (words, name, value), the words with a place for the name. A reader has no names for
    the parts of what a library has made.
    """
    words, name, value = next((thing for thing in things if _refused(thing[-1])), things[-1])
    chain = [value]
    while True:
        for part in _parts(words, name, value):
            new = not any(part[-1] is earlier for earlier in chain)
            if new and (reason := _refused(part[-1])):
                words, name, value = part
                chain.append(value)
                break
        else:
            return words.format(name), value
        if isinstance(reason.__cause__, RecursionError) and not callable(value):
            return words.format(name), value  # it has a thousand parts, one in another


def _parts(words, name, value):
    """(words, name, value) of all that goes along with ``value``."""
    if isinstance(value, dict):
        yield from ((words, f"{name}[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((words, f"{name}[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, HOLDERS) or not _is_of_a_library(value):
        if isinstance(value, functools.partial):
            for holder in ("args", "keywords"):
                yield from _parts(words, f"{name}.{holder}", getattr(value, holder))
        functions = [] if isinstance(value, type) else functions_of(value)
        for function in functions:
            if not _is_of_a_library(function):
                for variable, part in _variables(function).items():
                    yield f"{{!r}}, which {_user(function)} uses,", variable, part
        for attribute, part in getattr(value, "__dict__", {}).items():
            yield words, f"{name}.{attribute}", part


def _is_of_a_library(value):
    """Whether ``value``, or its class, comes from an installed package, Python, or this one."""
    if isinstance(value, types.FunctionType):
        module = value.__globals__.get("__name__")
    else:
        module = getattr(value if isinstance(value, type) else type(value), "__module__", None)
    if module == MAIN or module not in sys.modules:
        return False
    file = getattr(sys.modules[module], "__file__", None)
    installed = tuple(os.path.join(prefix, "") for prefix in (sys.prefix, sys.base_prefix))
    return file is None or file.startswith(installed) or module.startswith("d2lmgpu.")


def _variables(function):
    """The variables outside of it that ``function`` uses, by name."""
    names = {
        i.argval
        for code in _codes(function.__code__)
        for i in dis.get_instructions(code)
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    own = function.__globals__
    variables = {name: own[name] for name in names if name in own}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    variables |= {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}
    return {name: value for name, value in variables.items() if name not in INSTEAD}


def _user(function):
    """What a reader calls ``function``: one that a decorator has made has another one's name."""
    name, code = function.__name__, function.__code__
    maker, _, inner = getattr(code, "co_qualname", code.co_name).partition(".<locals>.")
    if name != code.co_name:
        return f"the decorator {maker} of {name}"
    if inner and maker in vars(sys.modules[MAIN]):
        return f"{inner} in {maker}"
    return name


def functions_of(fn) -> list:
    """All functions that ``fn`` is made of, from the outside in.

    A partial, a method, a callable object and a decorator each hold another function, the decorator
    in its closure if it does not tell by ``__wrapped__``. A class trains in its ``__init__``.
    """
    functions, values = [], []
    queue = [fn.__init__ if isinstance(fn, type) else fn]
    while queue:
        value = queue.pop(0)
        if (
            not callable(value)
            or isinstance(value, type)
            or any(value is earlier for earlier in values)
        ):
            continue
        values.append(value)
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


def rooms_of(fn) -> set:
    """The rooms of this package, as "d2lmgpu.torch", of which the notebook of ``fn`` has names."""
    rooms = set()
    for function in functions_of(fn):
        for value in function.__globals__.values():
            is_module = isinstance(value, types.ModuleType)
            name = value.__name__ if is_module else getattr(value, "__module__", None)
            rooms.add(".".join(str(name).split(".")[:2]))
    return rooms
