"""Is it the same ``train``? A hash of its code and of everything in the notebook that it uses."""

import dis
import functools
import secrets
import sys
import types
from hashlib import sha256

import cloudpickle

from d2lmgpu.lab.functions import KnownTrain

LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
CACHED = type(functools.lru_cache(print))
CODE = (
    "co_code",
    "co_consts",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
)
# Members of every class, which differ between two that are written alike.
OWN = ("__dict__", "__weakref__", "__doc__", "__firstlineno__", "_abc_impl")


def version(fn) -> str:
    """Eight hexadecimal digits, the same for two functions only if nothing tells them apart.

    They are a hash of ``fn`` pickled by value: its code and defaults, what decorators and partials
    hold, and the functions, classes, arrays and other objects in its notebook that it uses. Where
    something of that cannot be pickled, nobody knows: every call gives another version.

    Sources do not do for this, nor ``joblib.hash``: of a global number, an array or a decorator's
    argument they see nothing. ``cloudpickle.dumps`` has lines, and ids of classes, that differ when
    the same cell is run again.
    """
    if isinstance(fn, KnownTrain):
        return fn.version()
    fingerprint = Fingerprint(fn)
    try:
        fingerprint.dump(fn)
    except Exception:
        return secrets.token_hex(4)
    return fingerprint.hash.hexdigest()[:8]


class Fingerprint(cloudpickle.Pickler):
    """Hashes what a pickle would hold, less what says where and when code was written.

    Nothing loads these pickles: an object is reduced to a word and, as its state, what it is made
    of. A state is pickled after its object is known, so one that refers to itself is no trouble.
    """

    def __init__(self, fn):
        self.hash = sha256()
        while isinstance(fn, functools.partial):
            fn = fn.func
        self._home = getattr(fn, "__module__", None)
        # Arrays are hashed where they lie, not copied.
        super().__init__(self, 5, buffer_callback=lambda buffer: self.hash.update(buffer.raw()))

    def write(self, data) -> None:
        self.hash.update(data)

    def reducer_override(self, obj) -> object:
        if isinstance(obj, types.CodeType):
            return str, ("code",), [getattr(obj, name) for name in CODE]
        if isinstance(obj, types.FunctionType) and not self._is_elsewhere(obj):
            return str, ("function",), parts_of(obj)
        if isinstance(obj, type) and not self._is_elsewhere(obj):
            members = [(name, value) for name, value in vars(obj).items() if name not in OWN]
            return str, ("class",), [obj.__bases__, type(obj), members]
        if isinstance(obj, CACHED):
            return str, ("cached",), [vars(obj), obj.cache_parameters()]
        if (array := array_of(obj)) is not None:
            about = [getattr(obj, name, None) for name in ("requires_grad", "device", "__dict__")]
            return str, ("array",), [type(obj), array, about]
        return super().reducer_override(obj)

    def _is_elsewhere(self, obj):
        """Whether the name of ``obj`` says which it is: a worker imports it from there."""
        if obj.__module__ in ("__main__", self._home):
            return False
        if obj.__module__ == "builtins":
            return True  # also those that are not found there, such as the type of None
        value = sys.modules.get(obj.__module__)
        for name in obj.__qualname__.split("."):
            value = getattr(value, name, None)
        return value is obj


def parts_of(function) -> list:
    """All that says what ``function`` does; of the globals those that its code names."""
    names = sorted(globals_in(function.__code__) & function.__globals__.keys())
    return [
        function.__code__,
        function.__defaults__,
        function.__kwdefaults__,
        function.__closure__,
        vars(function),
        [(name, function.__globals__[name]) for name in names],
    ]


def globals_in(code) -> set:
    """The global names in ``code`` and in the functions within it."""
    inner = [globals_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    reads = [
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in LOADS
    ]
    return set(reads).union(*inner)


def array_of(obj) -> object:
    """A framework's array as NumPy's, which says by its values what it is; else None."""
    kind = type(obj)  # a module may import something when it is asked for a name
    try:
        if hasattr(kind, "asnumpy"):
            return obj.asnumpy()
        if hasattr(kind, "detach") and hasattr(kind, "numpy"):
            return obj.detach().cpu().numpy()
    except Exception:  # sparse, or of a type that NumPy lacks: as it pickles itself
        return None
    return None
