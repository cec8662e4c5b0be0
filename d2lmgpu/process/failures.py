"""What went wrong in the workers of ``launch``, in words."""

import json
import pickle
import signal

from d2lmgpu.process.child import end_in_words
from d2lmgpu.process.output import cut

_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the supervisor's, NCCL's watchdog's
LINES, LINE = 15, 400  # of the end of an output, and the bytes of each at its head and its tail


class LaunchError(RuntimeError):
    """A worker process failed, or a host; the message names it and shows the end of its output."""


def results(child, processes, end, errors_end, hang) -> list:
    """What the workers of ``child`` (which has ``left`` and ``log``) returned, by rank.

    ``processes`` has words for all processes by their names, in the order of their codes in
    ``end``, the last event; a worker's name is its rank. ``errors_end`` is the end of what rank 0
    wrote to standard error; ``hang`` is the ``Hang`` of the ranks, None without one. Raises
    LaunchError if a worker left nothing, or what cannot be used here, or if something that served
    them failed.
    """
    codes = end["codes"] and dict(zip(processes, end["codes"], strict=True))
    pickles = {name: child.left(f"result-{name}") for name in processes if name.isdigit()}
    failed = {name: code for name, code in (codes or {}).items() if _failed(name, code, pickles)}
    if codes and not failed:
        return [_unpickled(rank, result) for rank, result in pickles.items()]
    returned = [name for name, result in pickles.items() if result is not None]
    what = _what_happened(child, processes, codes and failed, returned, end, errors_end)
    raise LaunchError(f"{what}\n\n{hang}" if hang and hang.rule != "raised" else what)


def _failed(name, code, pickles):
    """Whether a process has failed: a server may be ended, a worker must have a result."""
    if name in pickles:
        return code != 0 or pickles[name] is None
    return code not in (0, None)


def _unpickled(rank, result):
    kind, _, pickled = result.partition(b"\n")
    try:
        return pickle.loads(pickled)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of the reader's own class, which may even end Python
        raise LaunchError(
            f"Worker {rank} returned a {kind.decode()}, which cannot be used outside of it "
            f"({cut(repr(error), 500, 500)}). Return plain numbers, arrays or a state_dict instead."
        ) from error


def _what_happened(child, processes, failed, returned, end, errors_end):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    for host, why in end.get("lost", {}).items():
        return f"Host {host} was lost: {why}.{_tail(child.log(f'log-{host}'))}"
    if failed is None:
        code = end["supervisor"]
        ended = "and its guard were ended" if code is None else f"ended with {code}"
        return f"The supervisor of the workers {ended}.{_tail(child.log('log') or errors_end)}"
    errors = {name: child.left(f"error-{name}") for name in failed}
    errors = {name: error and json.loads(error) for name, error in errors.items()}
    name = min(failed, key=lambda name: _order(failed[name], errors[name], [*failed].index(name)))
    what = _in_words(failed[name], errors[name], returned)
    log = errors_end if name == "0" else child.log(f"log-{name}")
    return f"{processes[name]} {what}{_tail(log)}"


def _in_words(code, error, returned):
    """What a process that has failed did; ``returned`` are the workers that have a result."""
    if error is None:
        return "was ended" if code is None else end_in_words(code)
    what = error["what"]
    if error["waited"] and returned:
        have = "Worker" if len(returned) == 1 else "Workers"
        what = (
            f"waited for its peers {error['waited']}\n{have} {' and '.join(returned)} had "
            "returned by then, after fewer steps, or fewer calls that all workers must make "
            "(all_reduce, barrier and their like), or calls with smaller tensors."
        )
    return f"{what}\n\n{error['traceback']}".rstrip()


def _order(code, error, number):
    """Which of several failures was first, as far as their ends tell."""
    if error is not None:
        return 4 if error["waited"] else 1, error["time_ns"]  # it fails because a peer has
    if code is None:
        return 5, number
    return 2 if code >= 0 else 3 if code in _ENDED_BY_OTHERS else 0, number


def _tail(log):
    """The last lines of an output, of each its head and its tail; a progress bar as it was last."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in (log or "").rstrip().split("\n")]
    end = "\n".join(cut(line, LINE, LINE) for line in lines[-LINES:])
    return f"\n\nThe end of its output:\n{end}" if end else ""
