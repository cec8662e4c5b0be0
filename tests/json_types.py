"""Whether what travels is what a type says: of TypedDicts, dataclasses, containers and literals.

(pydantic takes TypedDicts from Python 3.12 on only, and the course runs on 3.10.)
"""

import dataclasses
import types
import typing


def fault(value, kind, place="it"):
    """Where ``value``, as it arrives, is not of the type; None if it is."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return None
    if origin in (typing.Union, types.UnionType):
        faults = [fault(value, each, place) for each in arguments]
        return None if None in faults else min(faults, key=len)
    if origin is typing.Literal:
        return None if value in arguments else f"{place} is {value!r}"
    if typing.is_typeddict(kind):
        return _of_fields(value, kind, place)
    if origin is dict and isinstance(value, dict):
        return _first(
            fault(entry, arguments[1], f"{place}[{name!r}]") for name, entry in value.items()
        )
    if origin is list and isinstance(value, list):
        return _first(fault(e, arguments[0], f"{place}[{i}]") for i, e in enumerate(value))
    if origin is tuple and isinstance(value, (list, tuple)) and len(value) == len(arguments):
        each = enumerate(zip(value, arguments, strict=True))
        return _first(fault(e, argument, f"{place}[{i}]") for i, (e, argument) in each)
    allowed = {float: (float, int), types.NoneType: (types.NoneType,)}.get(kind, (kind,))
    if origin is None and type(value) in allowed:
        return None
    if dataclasses.is_dataclass(kind) and isinstance(value, kind):
        return None
    return f"{place} is {value!r:.80}, and not {kind}"


def _of_fields(value, kind, place):
    if not isinstance(value, dict):
        return f"{place} is {value!r:.80}, and no {kind.__name__}"
    fields = typing.get_type_hints(kind)
    if lacking := kind.__required_keys__ - value.keys():
        return f"{place} has no {min(lacking)}"
    if further := value.keys() - fields.keys():
        return f"{place} has {min(further)}, which {kind.__name__} has not"
    return _first(fault(entry, fields[name], f"{place}.{name}") for name, entry in value.items())


def _first(faults):
    return next((each for each in faults if each), None)
