"""What went wrong in the workers of ``launch``, in words."""

import json
import pickle
import signal
import traceback

from d2lmgpu.process.child import end_in_words

_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the supervisor's, NCCL's watchdog's


class LaunchError(RuntimeError):
    """A worker process failed, or a host; the message names it and shows the end of its output."""


def results(left, processes, end):
    """What the workers returned, by rank.

    ``left(name)`` is the content of a file that they left (see ``ranks``) or None. ``processes``
    has words for all processes by their names, in the order of their codes in ``end``, the last
    event; a worker's name is its rank. Raises LaunchError if a worker left nothing, or what cannot
    be used here, or if something that served them failed.
    """
    codes = end["codes"] and dict(zip(processes, end["codes"], strict=True))
    found = {name: left(f"result-{name}") for name in processes if name.isdigit()}
    failed = {name: code for name, code in (codes or {}).items() if _failed(name, code, found)}
    if codes and not failed:
        return [_unpickled(rank, result) for rank, result in found.items()]
    raise LaunchError(_what_happened(left, processes, codes and failed, end))


def _failed(name, code, found):
    """Whether a process has failed: a server may be ended, a worker must have a result."""
    if name in found:
        return code != 0 or found[name] is None
    return code not in (0, None)


def _unpickled(rank, result):
    kind, _, pickled = result.partition(b"\n")
    try:
        return pickle.loads(pickled)
    except Exception as error:
        raise LaunchError(
            f"Worker {rank} returned a {kind.decode()}, which cannot be used outside of it "
            f"({error}). Return plain numbers, arrays or a state_dict instead."
        ) from error


def _what_happened(left, processes, failed, end):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    for host, why in end.get("lost", {}).items():
        return f"Host {host} was lost: {why}.{_tail(left(f'log-{host}'))}"
    if failed is None:
        ended = f"The supervisor of the workers ended with {end['supervisor']}."
        return ended + _tail(left("log"))
    _, what, name = min(
        (*_end_of(left(f"error-{name}"), number, code), name)
        for number, (name, code) in enumerate(failed.items())
    )
    return f"{processes[name]} {what.rstrip()}{_tail(left(f'log-{name}'))}"


def _end_of(error, number, code):
    """When a process that has failed did so, as far as its end tells, and how, in words."""
    if error is not None:
        raised = json.loads(error)
        # Formatted here because only the caller knows the source lines of a notebook's cells.
        frames = traceback.StackSummary.from_list(raised["frames"]).format()[-5:]
        what = f"raised {raised['error']}\n\nThe end of its traceback:\n{''.join(frames)}"
        return (1, raised["time_ns"]), what
    if code is None:
        return (4, number), "was ended"
    order = 2 if code >= 0 else 3 if code in _ENDED_BY_OTHERS else 0
    return (order, number), end_in_words(code)


def _tail(log, lines=15):
    text = (log or b"").decode(errors="replace").rstrip()
    end = "\n".join(text.splitlines()[-lines:])
    return f"\n\nThe end of its output:\n{end}" if end else ""
