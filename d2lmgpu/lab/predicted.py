"""What the reader has predicted and what then happened: kept in files, without any widget.

A question has two files. The prediction is written once: of two kernels that lock at once the first
is kept, and it can be taken back only until what happened is shown. What happened is written anew
by every run. The name of a question says its page: 'scratch-pytorch/two devices'.
"""

import json
import os
import secrets
from datetime import datetime
from urllib.parse import quote, unquote

from d2lmgpu.machine.cache import predictions
from d2lmgpu.machine.checks import Need, is_real
from d2lmgpu.machine.saving import save

SOURCES = ("measured", "simulated", "modelled", "counted")
LONGEST = 200  # characters of a name as part of a file's

UNKEPT = {}  # file -> what could not be written to it, for as long as this process lasts
SHOWN = {}  # name -> what happened, shown by this process while there was no prediction


class PredictionError(ValueError):
    """A prediction cannot be made, changed or read: the message says why and what to do."""


need = Need(PredictionError)


def check_name(name):
    """Raises PredictionError unless ``name`` can be that of a question."""
    right = isinstance(name, str) and 0 < len(quote(name, safe="")) <= LONGEST
    need(right, "name", name, f"page and question as a text of 1 to {LONGEST} letters")


def lock(name, value, question="", unit=""):
    """Keeps the number ``value`` as the prediction; another needs ``take_back`` before.

    Raises PredictionError where another number is locked, or where the file is damaged.
    """
    check_name(name)
    need(is_real(value), "The prediction", value, "a finite number")
    path = _file(name, "predicted")
    if _read(path) is None:
        about = {"question": question, "unit": unit, "shown": name in SHOWN}
        _write(path, {"name": name, "value": float(value), "time": _now(), **about}, once=True)
    locked = _read(path)
    if locked["value"] != value:
        raise PredictionError(
            f"{name} was locked at {locked['value']:g} on {locked['time']}: take it back first."
        )


def take_back(name):
    """Forgets a prediction, unless what happened was shown beside it.

    Raises PredictionError where it was, or where the file cannot be removed.
    """
    path = _file(name, "predicted")
    if read(name)["happened"]:
        raise PredictionError(f"What happened was shown: the prediction of {name} stays.")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise PredictionError(f"{path} cannot be removed: {error.strerror}.") from None
    UNKEPT.pop(path, None)


def happened(name, value, source="measured"):
    """Keeps what happened, if it was predicted; ``source`` is one of SOURCES.

    Raises PredictionError for what is no number, or no source.
    """
    check_name(name)
    if read(name)["predicted"]:
        _write(_file(name, "happened"), outcome(value, source))
    else:
        SHOWN[name] = outcome(value, source)


def outcome(value, source="measured"):
    """What happened, as it is kept; raises as `happened` does."""
    need(is_real(value), "What happened", value, "a finite number")
    need.choice("source", source, SOURCES)
    return {"value": float(value), "source": source, "time": _now()}


def read(name):
    """What is known of a question: ``predicted``, ``happened`` (each a dict or None), ``remark``.

    The remark says in words what is damaged or could not be kept, and what to do.
    """
    found, remarks = {}, []
    for what in ("predicted", "happened"):
        path = _file(name, what)
        try:
            found[what] = _read(path)
        except PredictionError as error:
            found[what] = None
            remarks.append(str(error))
        if path in UNKEPT:
            remarks.append(
                f"{predictions()} cannot be written: what is locked ends with this kernel."
            )
    found["happened"] = found["happened"] or SHOWN.get(name)
    asked = {word: (found["predicted"] or {}).get(word, "") for word in ("question", "unit")}
    return found | asked | {"name": name, "remark": " ".join(dict.fromkeys(remarks))}


def everything():
    """What is known of every question that was predicted, by time."""
    paths = {*predictions().glob("*.predicted.json"), *UNKEPT}
    names = {unquote(path.name.removesuffix(".predicted.json")) for path in paths}
    known = [read(name) for name in names if not name.endswith(".happened.json")]
    return sorted(known, key=lambda one: ((one["predicted"] or {"time": ""})["time"], one["name"]))


def _file(name, what):
    return predictions() / f"{quote(name, safe='')}.{what}.json"


def _now():
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _read(path):
    if path in UNKEPT:
        return UNKEPT[path]
    try:
        content = json.loads(path.read_bytes())
        if is_real(content["value"]) and isinstance(content["time"], str):
            return content
        reason = "its value or its time is none"
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise PredictionError(
        f"{path} is damaged ({reason}). Remove it, and the question is open again."
    )


def _write(path, content, once=False):
    """Writes a file, whole or not at all; ``once``: only if there is none.

    What cannot be written is remembered as long as the process lasts.
    """
    text = json.dumps(content).encode()
    try:
        if once:
            mine = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            save(mine, text)
            try:
                os.link(mine, path)
            except FileExistsError:  # another kernel was first
                pass
            finally:
                mine.unlink()
        else:
            save(path, text)
    except OSError:
        UNKEPT[path] = content
