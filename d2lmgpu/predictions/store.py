"""What the reader has predicted and what then happened: kept in files, without any widget.

A question has two files. The prediction is written once: of two kernels that lock at once the first
is kept, and it can be taken back only until what happened is shown. What happened is written anew
by every run. A damaged file closes its own question and no other; where nothing can be written, it
is known as long as the process lasts. The name of a question says its page: 'scratch-pytorch/two
devices'.
"""

import json
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, unquote

from d2lmgpu.machine.atomic_write import save, save_first
from d2lmgpu.machine.cache import predictions
from d2lmgpu.machine.checks import Need, is_real
from d2lmgpu.predictions.entry import SOURCES, Known, Outcome

LONGEST = 200  # characters of a name as part of a file's

UNSAVED: dict[Path, dict] = {}  # the content of files that could not be written
SHOWN: dict[str, Outcome] = {}  # by name: outcomes that were shown before there was a prediction


class PredictionError(ValueError):
    """A prediction cannot be made, changed or read: the message says why and what to do."""


need = Need(PredictionError)


def check_name(name: str) -> None:
    """Raises PredictionError unless ``name`` can be that of a question."""
    right = isinstance(name, str) and 0 < len(quote(name, safe="")) <= LONGEST
    need(right, "name", name, f"page and question as a text of 1 to {LONGEST} letters")


def lock(name: str, value: float, question: str = "", unit: str = "") -> None:
    """Keep ``value``, in ``unit``, as the prediction; another needs `take_back` before.

    Raises PredictionError where another number is locked, or where the file is damaged.
    """
    check_name(name)
    need(is_real(value), "The prediction", value, "a finite number")
    path = _file(name, "predicted")
    if _read(path) is None:
        about = {"question": question, "unit": unit, "shown": name in SHOWN}
        content = {"name": name, "value": float(value), "time": _now(), **about}
        _write(path, content, save_first)
    locked = _read(path)
    if locked["value"] != value:
        raise PredictionError(
            f"{name} was locked at {locked['value']:g} on {locked['time']}: take it back first."
        )


def take_back(name: str) -> None:
    """Forget a prediction, unless what happened was shown beside it.

    Raises PredictionError where it was, or where the file cannot be removed.
    """
    path = _file(name, "predicted")
    if read(name)["happened"]:
        raise PredictionError(f"What happened was shown: the prediction of {name} stays.")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise PredictionError(f"{path} cannot be removed: {error.strerror}.") from None
    UNSAVED.pop(path, None)


def record_outcome(name: str, value: float, source: str = "measured") -> None:
    """Keep what happened, if it was predicted; ``source`` is one of SOURCES.

    Raises PredictionError for what is no number, or no source.
    """
    check_name(name)
    if read(name)["predicted"]:
        _write(_file(name, "happened"), outcome(value, source), save)
    else:
        SHOWN[name] = outcome(value, source)


def outcome(value: float, source: str = "measured") -> Outcome:
    """What happened, as it is kept; raises as `record_outcome` does."""
    need(is_real(value), "What happened", value, "a finite number")
    need.choice("source", source, SOURCES)
    return {"value": float(value), "source": source, "time": _now()}


def read(name: str) -> Known:
    """What is known of a question; the remark says what is damaged or could not be kept."""
    files, remarks = {}, []
    for kind in ("predicted", "happened"):
        path = _file(name, kind)
        try:
            files[kind] = _read(path)
        except PredictionError as error:
            files[kind] = None
            remarks.append(str(error))
        if path in UNSAVED:
            remarks.append(
                f"{predictions()} cannot be written: what is locked ends with this kernel."
            )
    locked = files["predicted"] or {}
    return {
        "name": name,
        "question": locked.get("question", ""),
        "unit": locked.get("unit", ""),
        "predicted": files["predicted"],
        "happened": files["happened"] or SHOWN.get(name),
        "remark": " ".join(dict.fromkeys(remarks)),
    }


def read_all() -> list[Known]:
    """What is known of every question that was predicted, by time."""
    paths = {*predictions().glob("*.predicted.json"), *UNSAVED}
    names = {unquote(path.name.removesuffix(".predicted.json")) for path in paths}
    entries = [read(name) for name in names if not name.endswith(".happened.json")]

    def when(entry):
        locked = entry["predicted"]
        return locked["time"] if locked else "", entry["name"]

    return sorted(entries, key=when)


def _file(name, kind):
    return predictions() / f"{quote(name, safe='')}.{kind}.json"


def _now():
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _read(path):
    """The content of a file, None for no file; PredictionError where it is damaged."""
    if path in UNSAVED:
        return UNSAVED[path]
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


def _write(path, content, write):
    """``write`` the content: `save` or `save_first`. What cannot be written is remembered."""
    try:
        write(path, json.dumps(content).encode())
    except OSError:
        UNSAVED[path] = content
