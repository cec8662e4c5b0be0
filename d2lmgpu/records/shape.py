"""What a record is made of, and where one is not: said in words, before anybody uses it."""

from types import NoneType

Number = float | int
SHAPE = {  # of every record; {name: shape}, [shape of each], (shapes in this order), or a type
    "schema": int,
    "machine": {"cpu": str, "cores": int, "gpus": [str]},
    "versions": {...: str},
    "commit": str,
    "command": str,
    "date": str,
}
SHAPES = {  # of what only some have
    "profile": str,
    "data": str,
    "runs": [{}],
    "speedups": [{}],
    "outcomes": [
        {
            "title": str,
            "seconds": Number,
            "at": Number,
            "said": str,
            "rows": [(str, str, Number | None, Number | None)],
            "lanes": {...: [(str, Number, Number)]},
        }
    ],
}
NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
    NoneType: "null",
    bool: "true or false",
    Number: "a number",
    Number | None: "a number or null",
}


def wrong(record) -> str:
    """Where ``record`` is not of this shape, as 'machine.gpus is null, not a list'; else ''."""
    own = SHAPES.keys() & record.keys() if isinstance(record, dict) else ()
    return _wrong(record, SHAPE | {name: SHAPES[name] for name in own}, "")


def _wrong(value, shape, where):
    kind = {dict: dict, list: list, tuple: list}.get(type(shape), shape)
    if isinstance(value, bool) or not isinstance(value, kind):
        return f"{where or 'it'} is {NAMES[type(value)]}, not {NAMES[kind]}"
    for key, inner in _parts(value, shape):
        place = f"{where}[{key}]" if kind is list else f"{where}.{key}".lstrip(".")
        if (key >= len(value)) if kind is list else (key not in value):
            return f"there is no {place}"
        if fault := _wrong(value[key], inner, place):
            return fault
    return ""


def _parts(value, shape):
    """(key, shape) of each part that ``value`` has to have."""
    if isinstance(shape, tuple):
        return enumerate(shape)
    if isinstance(shape, list):
        return [(i, shape[0]) for i in range(len(value))]
    if isinstance(shape, dict):
        return [(key, shape[...]) for key in value] if ... in shape else shape.items()
    return []
