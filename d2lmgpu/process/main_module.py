"""A worker's ``__main__``: what the caller's cells define, by the names that they give it.

cloudpickle sends functions and classes of ``__main__`` by value. That is half of it: what a worker
pickles afterwards, for its peers, a file, a pool or a DataLoader, only names ``__main__.Batch``,
which must be there, also in the processes that the worker starts. So all functions of the caller's
``__main__`` get one namespace here, which is that of the worker's ``__main__``; what was sent is
there by its name, and its source is where ``inspect`` and tracebacks look. What a worker returns is
sent back by name, so that the caller gets instances of its own classes.
"""

import copyreg
import dataclasses
import enum
import functools
import io
import linecache
import multiprocessing.queues
import multiprocessing.spawn
import pickle
import sys
import types
import typing
import weakref
from collections import ChainMap
from typing import NoReturn

import cloudpickle

MAIN = "__main__"
ATTRIBUTES = ("__name__", "__package__", "__path__", "__file__")  # by which it imports
NO_FILE = "<dynamic-code>"  # what cloudpickle 3.1.3 and later has for the file of a function
_sent = {}  # what the caller has sent by its name; see ``returned``


def _code(code):
    """As cloudpickle has it, but with its file: by that an error or a cause names its line."""
    make, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if part == NO_FILE else part for part in parts)


def _missing(_):
    return getattr, (dataclasses, "MISSING")  # which is compared by identity


def _lock_free(cached):
    """A cached property without the lock that it has before Python 3.12."""
    return functools.cached_property, (cached.func,), {"attrname": cached.attrname}


def _new_type(new):
    return _made, (typing.NewType, (new.__name__, new.__supertype__), new.__module__)


def _parameters(new):
    return _made, (type(new), (new.__name__,), new.__module__)


def _made(make, arguments, module):
    """What ``make`` makes, as if ``module`` had made it."""
    new = make(*arguments)
    new.__module__ = module
    return new


def _cached(cached):
    """A function with a cache: it is empty where it arrives."""
    attributes = {name: value for name, value in vars(cached).items() if name not in _GIVEN}
    return _make_cached, (cached.__wrapped__, cached.cache_parameters()), attributes or None


def _make_cached(function, parameters):
    return functools.lru_cache(**parameters)(function)


_GIVEN = vars(functools.lru_cache(lambda: None)).keys()  # by lru_cache itself


def _dispatching(function):
    """A function that chooses by the type of its argument, with all that it chooses from."""
    return _make_dispatching, (function.__wrapped__, dict(function.registry))


def _make_dispatching(function, registry):
    dispatching = functools.singledispatch(function)
    for kind, implementation in registry.items():
        dispatching.register(kind, implementation)
    return dispatching


def _class(kind, make, arguments, state=None, *rest):
    """As cloudpickle has it, with its whole name and its slots; its base classes hear nothing."""
    if not isinstance(state, tuple):
        return make, arguments, state, *rest
    if issubclass(kind, enum.Enum):
        return _enum(kind, make, arguments, state, *rest)
    (*_, own, _, _), (attributes, _) = arguments, state
    own["__qualname__"] = kind.__qualname__
    for base in kind.__bases__:  # what a base class has as well, and later perhaps no more
        same = {name: value for name, value in vars(base).items() if name not in OF_EACH_CLASS}
        attributes.update(
            (name, value) for name, value in same.items() if vars(kind).get(name, same) is value
        )
    if "__slots__" in vars(kind) and not issubclass(kind, tuple):  # else it would have a dict
        own["__slots__"] = attributes.pop("__slots__")
        for name, value in list(attributes.items()):
            if isinstance(value, types.MemberDescriptorType):
                del attributes[name]  # of a slot with a private name
    bases = [base for base in kind.__mro__[1:] if "__init_subclass__" in vars(base)]
    bases = [base for base in bases if base.__module__ == MAIN]
    if not bases:
        return make, arguments, state, *rest
    return _unheard, (bases, make, *arguments), state, *rest


def _enum(kind, make, arguments, state, *rest):
    """As cloudpickle has it, with aliases, and each member as its own ``__new__`` has made it."""
    members, (attributes, _) = kind.__members__, state
    if not members:
        return make, arguments, state, *rest
    *rest, set_state = rest
    made = {"__new__": _same_member, "__init__": _made_already}
    made |= {name: _Member(_of_its_type(value), value.value) for name, value in members.items()}
    own = {name: vars(value).copy() for name, value in members.items()}
    for name in members:
        attributes.pop(name, None)
        for attribute in OF_EACH_MEMBER & own[name].keys():
            del own[name][attribute]
    arguments = *arguments[:3], made, *arguments[4:]
    return make, arguments, (set_state, state, own), *rest, _set_enum


@dataclasses.dataclass
class _Member:
    """Of a member of an enumeration: what its type is made of, and its value."""

    arguments: tuple
    value: object


def _of_its_type(member):
    """The arguments by which a member's data type, as ``int`` or ``str``, makes it again."""
    make, arguments, *_ = object.__reduce_ex__(member, 2)
    return arguments[1:] if make is copyreg.__newobj__ else arguments


def _same_member(kind, value):
    (member,) = value if isinstance(value, tuple) else (value,)  # which a kind of tuples has it in
    new = kind._member_type_.__new__(kind, *member.arguments)
    new._value_ = member.value
    return new


def _made_already(*_):
    """In place of the ``__init__`` of members, which then get what it gave them."""


def _set_enum(kind, state):
    set_state, attributes, own = state
    for name in ("__init__", "__new_member__"):
        if vars(kind).get(name) in (_made_already, _same_member):
            delattr(kind, name)
    set_state(kind, attributes)
    for name, of_member in own.items():
        vars(kind[name]).update(of_member)


def _unheard(bases, make, *arguments):
    """The class that ``make`` makes; its ``bases`` were told of it where it was defined."""
    hook = "__init_subclass__"
    hooks = {base: vars(base)[hook] for base in bases if hook in vars(base)}  # one may come later
    try:
        for base in hooks:
            base.__init_subclass__ = classmethod(lambda cls, **_: None)
        return make(*arguments)
    finally:
        for base, own in hooks.items():
            base.__init_subclass__ = own


def _is_compiled(obj):
    """Whether ``obj`` is a function or a network that torch.jit has compiled."""
    jit = sys.modules.get("torch.jit")
    return jit is not None and isinstance(obj, (jit.ScriptFunction, jit.ScriptModule))


def _loaded(compiled):
    import torch

    return torch.jit.load(io.BytesIO(compiled))


def dispatches(function) -> bool:
    """Whether ``functools.singledispatch`` has made it."""
    return isinstance(getattr(function, "registry", None), types.MappingProxyType) and hasattr(
        function, "dispatch"
    )


# What pickles itself by its name, which leads nowhere if a cell has given it.
BY_NAME = {
    type(functools.lru_cache(len)): _cached,
    typing.NewType: _new_type,
    typing.ParamSpec: _parameters,
    getattr(typing, "TypeVarTuple", typing.ParamSpec): _parameters,  # from Python 3.11 on
}


OF_EACH_MEMBER = {"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"}
OF_EACH_CLASS = {"__module__", "__dict__", "__weakref__", "__slots__", "__doc__", "_abc_impl"}
_TABLE = ChainMap(
    {
        types.CodeType: _code,
        type(dataclasses.MISSING): _missing,
        functools.cached_property: _lock_free,
    },
    cloudpickle.Pickler.dispatch_table,
)


class Pickler(cloudpickle.Pickler):
    """cloudpickle's, and what it leaves out of the functions and classes that cells define."""

    dispatch_table = _TABLE

    def reducer_override(self, obj) -> object:
        if (reduce := BY_NAME.get(type(obj))) and by_value(obj):
            return reduce(obj)
        if type(obj) is types.FunctionType and dispatches(obj) and by_value(obj):
            return _dispatching(obj)
        if _is_compiled(obj):
            return _loaded, (obj.save_to_buffer(),)
        reduced = super().reducer_override(obj)
        if isinstance(reduced, tuple) and isinstance(obj, type):
            return _class(obj, *reduced)
        return reduced


def by_value(obj) -> bool:
    """Whether ``obj``, which has a name, is sent by value: no other process finds it by that."""
    module = getattr(obj, "__module__", None)
    return module == MAIN or name_in(sys.modules.get(module), obj) is None


def name_in(module, obj) -> str | None:
    """The first part of the name by which ``obj`` is found in ``module``; None if it is not."""
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", ""))
    value = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return name.partition(".")[0] if value is obj else None


class Namespace:
    """Travels in place of the globals of the caller's ``__main__``, and becomes the worker's."""

    def __init__(self, attributes):
        self.attributes = attributes

    def __reduce__(self):
        return _namespace, (self.attributes,)


def _namespace(attributes):
    there = vars(sys.modules[MAIN])
    there.update(attributes)
    return there


def get_ipython() -> NoReturn:
    """What a line with ``!`` or ``%`` calls. Raises NameError, as wherever there is no IPython."""
    raise NameError(
        "get_ipython: lines with ! or % are a notebook's own, and this process has no notebook. "
        "Use Python instead: for a command, subprocess.run(..., check=True)."
    )


def nobody_to_ask(prompt="") -> NoReturn:
    """In place of ``input``. Raises EOFError, as wherever nothing can be read."""
    raise EOFError(
        "input: this process has nobody to ask. Ask in a cell, and give the function the answer "
        "as an argument."
    )


def received(call) -> tuple:
    """The function and the arguments in ``call`` (see ``sending.pickled``).

    From then on ``__main__`` is the caller's in this process and in those that it starts.
    """
    sys.modules[MAIN] = module = types.ModuleType(MAIN)
    unpickler = pickle.Unpickler(io.BytesIO(call))
    fn, arguments = unpickler.load()
    while more := unpickler.load():
        vars(module).update(more)
        _sent.update(more)
    linecache.cache.update(unpickler.load())
    _hand_on(call)
    multiprocessing.queues.Queue._on_queue_feeder_error = property(
        lambda queue: functools.partial(_not_fed, weakref.ref(queue))
    )
    return fn, arguments


def returned(result) -> bytes:
    """What a worker returns as bytes: what the caller has sent it gets back as its own."""
    file = io.BytesIO()
    _Returning(file).dump(result)
    return file.getvalue()


class _Returning(Pickler):
    def reducer_override(self, obj) -> object:
        if isinstance(obj, (types.FunctionType, type)) and obj.__module__ == MAIN:
            name = name_in(sys.modules[MAIN], obj)
            if name in _sent and getattr(sys.modules[MAIN], name) is _sent[name]:
                return NotImplemented  # by name
        return super().reducer_override(obj)


class _Main:
    """Unpickled in a process that does not fork this one, it makes ``__main__`` there."""

    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return _in_a_new_process, (list(sys.path), self.call)


def _in_a_new_process(path, call):
    sys.path[:] = path
    received(call)


def _hand_on(call):
    """Let the processes that spawn or a fork server start have it, too."""

    def prepared(name):
        data = _get_preparation_data(name)
        for how in ("init_main_from_name", "init_main_from_path"):
            data.pop(how, None)
        return data | {"d2lmgpu_main": _Main(call)}

    multiprocessing.spawn.get_preparation_data = prepared


_get_preparation_data = multiprocessing.spawn.get_preparation_data
_print_error = multiprocessing.queues.Queue._on_queue_feeder_error


def _not_fed(queue, error, obj):
    """What could not be pickled for a queue is an error at its other end, if a DataLoader waits.

    It would wait for ever: of what is wrong multiprocessing only prints a traceback.
    """
    data = sys.modules.get("torch.utils.data")
    loader = data and data.get_worker_info()
    if not loader or not isinstance(obj, tuple):
        return _print_error(error, obj)
    from torch._utils import ExceptionWrapper

    number, batch = obj
    if isinstance(batch, ExceptionWrapper):
        what = f"it raised {batch.exc_type.__name__}, whose class cannot be found by its name"
        what += f" ({error}):\n{batch.exc_msg}"
    else:
        what = f"its batch, a {type(batch).__name__}, cannot be sent to the process that waits for "
        what += f"it ({error}): give tensors, arrays, numbers, texts or objects of a cell's classes"
    try:
        raise TypeError(what) from error
    except TypeError:
        wrapped = ExceptionWrapper(where=f"in DataLoader worker process {loader.id}")
    queue().put((number, wrapped))
