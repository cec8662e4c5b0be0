"""What the streams of GPUs did, by a trace of torch.profiler: computing, NCCL, and NCCL alone."""

from collections import defaultdict


def covered(spans) -> int:
    """How long at least one of the spans lasted: each moment counts once.

    Defined in chapters/diagnosis/traces.

    Parameters
    ----------
    spans : iterable of tuple
        Beginnings and ends.

    Returns
    -------
    float
        In the unit of the spans.
    """
    total, reached = 0, float("-inf")
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def gpu_times(trace) -> dict:
    """How long each GPU computed, exchanged, and exchanged with nothing computed beside it.

    Defined in chapters/diagnosis/traces. A kernel of NCCL is one whose name begins with "nccl". It
    waits for the other ranks while it is shown. Copies and fills are neither of the two.

    Parameters
    ----------
    trace : dict
        What torch.profiler exports for Chrome, with activities of CUDA.

    Returns
    -------
    dict
        Number of a GPU -> dict with seconds: "computing", "NCCL" and "exposed" of the whole GPU,
        and under "streams" the number of a stream -> its "computing" and "NCCL".
    """
    gpus = defaultdict(lambda: defaultdict(lambda: {"computing": [], "NCCL": []}))
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel" and event["ph"] == "X":
            kind = "NCCL" if event["name"].startswith("nccl") else "computing"
            spans = gpus[event["args"]["device"]][event["args"]["stream"]][kind]
            spans.append((event["ts"], event["ts"] + event["dur"]))  # microseconds
    times = {}
    for device, streams in sorted(gpus.items()):
        computing, nccl = (
            [span for spans in streams.values() for span in spans[kind]]
            for kind in ("computing", "NCCL")
        )
        times[device] = {
            "computing": covered(computing) / 1e6,
            "NCCL": covered(nccl) / 1e6,
            "exposed": (covered(computing + nccl) - covered(computing)) / 1e6,
            "streams": {
                stream: {kind: covered(spans) / 1e6 for kind, spans in kinds.items()}
                for stream, kinds in sorted(streams.items())
            },
        }
    return times
