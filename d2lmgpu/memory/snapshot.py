"""Who holds the memory at the peak, by a snapshot of PyTorch's allocator for GPUs."""

from collections import Counter
from itertools import accumulate


def line_of(frames) -> str:
    """The line of a reader's own code in the frames of an allocation.

    Defined in chapters/memory/out-of-memory.

    Parameters
    ----------
    frames : list of dict
        Of a block or an event of a snapshot, the innermost first.

    Returns
    -------
    str
        As "train.py:7"; "no line of yours" where no frame is in a file of Python outside of
        installed packages, "not recorded" where there are no frames.
    """
    for frame in frames:
        file = frame["filename"]
        if file.endswith(".py") and "-packages" not in file:
            return f"{file}:{frame['line']}"
    return "no line of yours" if frames else "not recorded"


def held_at_peak(snapshot, device=0) -> dict:
    """The lines of code that had taken what was in use at the highest moment of a snapshot.

    Defined in chapters/memory/out-of-memory. The history is walked backwards from the blocks that
    are in use at its end: so it may begin anywhere, also where older events were overwritten.

    Parameters
    ----------
    snapshot : dict
        What ``torch.cuda.memory._snapshot()`` returns, or ``_dump_snapshot`` pickled, with the
        history of ``_record_memory_history()``.
    device : int
        The number of the GPU.

    Returns
    -------
    dict
        Line, as ``line_of`` tells it -> bytes that were requested there and in use at the peak, the
        most first.
    """
    events = snapshot["device_traces"][device]
    alive, lives = {}, []  # a life: bytes, frames, first moment, moment after the last

    def lives_to(moment, address, size, frames):
        alive[address] = [size, frames, 0, moment]
        lives.append(alive[address])

    for segment in snapshot["segments"]:
        for block in segment["blocks"] if segment["device"] == device else ():
            if block["state"] != "inactive":
                what = block["address"], block["requested_size"], block["frames"]
                lives_to(len(events) + 1, *what)
    for moment in range(len(events), 0, -1):
        event = events[moment - 1]
        if event["action"] == "free_completed":
            lives_to(moment, event["addr"], event["size"], [])
        elif event["action"] == "alloc" and event["addr"] in alive:
            alive.pop(event["addr"])[1:3] = event["frames"], moment
    changes, held = Counter(), Counter()
    for size, _, first, end in lives:
        changes.update({first: size})
        changes.subtract({end: size})
    totals = list(accumulate(changes[moment] for moment in range(len(events) + 1)))
    peak = totals.index(max(totals))
    for size, frames, first, end in lives:
        held[line_of(frames)] += size if first <= peak < end else 0
    return dict((+held).most_common())
