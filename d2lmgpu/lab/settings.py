"""The settings of a run as the query of a URL, and as a cell that trains the same again."""

import ast
import functools
import inspect
import os
import sys
from urllib.parse import parse_qsl, urlencode

from d2lmgpu.lab.functions import CONTROLS, KnownTrain
from d2lmgpu.machine.checks import is_real
from d2lmgpu.machine.devices import VARIABLE

WHOLE = ("num_gpus", "batch_size", "num_epochs")
SWITCH = {"1": True, "0": False}


class SettingsError(ValueError):
    """What stands in a URL is no setting of a lab."""


def query_of(settings):
    """``settings`` (see ``numbers.settings``) as a URL's query; None is left out."""
    known = {name: value for name, value in settings.items() if value is not None}
    return urlencode({n: int(v) if isinstance(v, bool) else v for n, v in known.items()})


def settings_from(query):
    """The settings in a URL's query, such as 'num_gpus=2&batch_size=512&lr=0.2'.

    What it does not name is not in the answer, except that ``scale_lr`` is False and
    ``num_epochs`` None (the training's own) then. Raises SettingsError for what is no setting.
    """
    try:
        pairs = parse_qsl(query.lstrip("?"), True, True, errors="strict", max_num_fields=20)
    except ValueError as error:
        raise SettingsError(f"{query[:200]!r} is no query of a URL ({error}).") from None
    found = {"scale_lr": False, "num_epochs": None}
    seen = set()
    for name, value in pairs:
        if name in seen:
            raise SettingsError(f"{name} is given twice: give it once.")
        seen.add(name)
        found[name] = _setting(name, value)
    return found


def _setting(name, value):
    given = f"{name}={value[:200]!r}"
    if name == "train":
        return value
    if name == "scale_lr":
        if value not in SWITCH:
            raise SettingsError(f"{given}: give 1 or 0.")
        return SWITCH[value]
    if name in WHOLE:
        if not (value.isascii() and value.isdecimal() and 1 <= len(value) <= 9 and int(value)):
            raise SettingsError(f"{given}: give a whole number from 1 up.")
        return int(value)
    if name == "lr":
        try:
            lr = float(value)
        except ValueError:
            lr = 0.0
        if not is_real(lr) or lr <= 0:
            raise SettingsError(f"{given}: give a finite number above 0.")
        return lr
    allowed = ", ".join(("train", *CONTROLS, "scale_lr"))
    raise SettingsError(f"{name[:200]!r} is no setting of the lab: give {allowed}.")


def cell(model):
    """Python that trains as the next run will, in the reader's own names; "" if there are none."""
    called = _source(model.function)
    given = {name: getattr(model, name) for name in CONTROLS} | model.fixed
    if given["num_epochs"] is None:
        del given["num_epochs"]
    arguments = {name: _literal(value) for name, value in given.items()}
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
