"""What went wrong in the workers of ``launch``, in words."""

import json
import pickle
import signal
import traceback

from d2lmgpu.process.child import end_in_words

_ENDED_BY_OTHERS = {-signal.SIGTERM, -signal.SIGABRT}  # the supervisor's, NCCL's watchdog's


class LaunchError(RuntimeError):
    """A worker process failed, or a host; the message names it and shows the end of its output."""


def results(left, places, end):
    """What the workers returned, by rank.

    ``left(name)`` is the content of a file that they left (see ``ranks``) or None, ``places`` has
    words for where each of them ran, ``end`` is the last event. Raises LaunchError if one of them
    left nothing, or what cannot be used here.
    """
    found = [left(f"result-{rank}") for rank in range(len(places))]
    if end["codes"] == [0] * len(places) and None not in found:
        return [_unpickled(rank, result) for rank, result in enumerate(found)]
    raise LaunchError(_what_happened(left, places, end))


def _unpickled(rank, result):
    kind, _, pickled = result.partition(b"\n")
    try:
        return pickle.loads(pickled)
    except Exception as error:
        raise LaunchError(
            f"Worker {rank} returned a {kind.decode()}, which cannot be used outside of it "
            f"({error}). Return plain numbers, arrays or a state_dict instead."
        ) from error


def _what_happened(left, places, end):
    """What went wrong first, in words: once one worker has gone, its peers mostly fail, too."""
    for host, why in end.get("lost", {}).items():
        return f"Host {host} was lost: {why}.{_tail(left(f'log-{host}'))}"
    if end["codes"] is None:
        ended = f"The supervisor of the workers ended with {end['supervisor']}."
        return ended + _tail(left("log"))
    _, what, rank = min(
        (*_end_of(left(f"error-{rank}"), rank, code), rank)
        for rank, code in enumerate(end["codes"])
        if code != 0 or left(f"result-{rank}") is None
    )
    worker = f"Worker {rank} of {len(places)}{places[rank]}"
    return f"{worker} {what.rstrip()}{_tail(left(f'log-{rank}'))}"


def _end_of(error, rank, code):
    """When a worker that has failed did so, as far as its end tells, and how, in words."""
    if error is not None:
        raised = json.loads(error)
        # Formatted here because only the caller knows the source lines of a notebook's cells.
        frames = traceback.StackSummary.from_list(raised["frames"]).format()[-5:]
        what = f"raised {raised['error']}\n\nThe end of its traceback:\n{''.join(frames)}"
        return (1, raised["time_ns"]), what
    if code is None:
        return (4, rank), "was ended"
    order = 2 if code >= 0 else 3 if code in _ENDED_BY_OTHERS else 0
    return (order, rank), end_in_words(code)


def _tail(log, lines=15):
    text = (log or b"").decode(errors="replace").rstrip()
    end = "\n".join(text.splitlines()[-lines:])
    return f"\n\nThe end of its output:\n{end}" if end else ""
