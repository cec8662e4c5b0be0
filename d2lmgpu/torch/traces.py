"""Traces of torch.profiler, of all ranks: one trace of them, its spans, and what lies in which."""

import json
from collections import Counter, namedtuple
from pathlib import Path

Span = namedtuple("Span", "rank thread name start end")
Span.__doc__ = """A stretch of time in which a thread of a rank did something, in milliseconds.

Parameters
----------
rank : int
    Whose it is.
thread : int
    As the profiler numbers it.
name : str
    An operation, or a label of ``record_function``.
start, end : float
    Milliseconds from the first span of the trace on.
"""
ROUNDING = 1e-5  # milliseconds: the profiler writes thousandths of a microsecond
KINDS = {
    "gloo:all_reduce": "exchange",
    "forward": "compute",
    "backward": "compute",
    "update": "compute",
    "log": "log",
    "load": "load",
}
LEAST_DRAWN = 0.1  # milliseconds


def merged(traces) -> dict:
    """One trace of all ranks, each a process of its own, on the clock of the first trace.

    Complete spans are kept, and a name for each process. Process ``rank + 1`` is that of a rank,
    since some viewers keep 0 for themselves.

    Parameters
    ----------
    traces : list of dict
        What ``export_chrome_trace`` writes, of each rank one.

    Returns
    -------
    dict
        In the same format.
    """
    events = []
    for trace in traces:
        rank = trace.get("distributedInfo", {"rank": 0})["rank"]
        ahead = (trace["baseTimeNanoseconds"] - traces[0]["baseTimeNanoseconds"]) / 1000
        process = {"name": "process_name", "ph": "M", "pid": rank + 1}
        events.append(process | {"args": {"name": f"rank {rank}"}})
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["cat"] != "Trace":
                fields = {key: event[key] for key in ("name", "cat", "ph", "tid", "dur")}
                events.append(fields | {"pid": rank + 1, "ts": event["ts"] + ahead})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def read_merged(paths) -> dict:
    """One trace of the files of all ranks.

    Parameters
    ----------
    paths : iterable of str or pathlib.Path
        What ``export_chrome_trace`` has written, of each rank one.

    Returns
    -------
    dict
        As `merged` makes it.
    """
    return merged([json.loads(Path(path).read_text(encoding="utf-8")) for path in paths])


def spans_of(trace) -> list[Span]:
    """All spans of a merged trace.

    Parameters
    ----------
    trace : dict
        As `merged` makes it.

    Returns
    -------
    list of Span
        By their start, and of those that start together the longest first. The first starts at 0.
    """
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    first = min((e["ts"] for e in events), default=0)
    spans = [
        Span(
            e["pid"] - 1,
            e["tid"],
            e["name"],
            (e["ts"] - first) / 1000,
            (e["ts"] + e["dur"] - first) / 1000,
        )
        for e in events
    ]
    return sorted(spans, key=lambda span: (span.start, -span.end))


def with_parents(spans) -> list:
    """Each span with the innermost one around it.

    Parameters
    ----------
    spans : list of Span
        Of one thread, in the order of `spans_of`.

    Returns
    -------
    list of tuple
        Of each span: the span, and that around it or None.
    """
    pairs, around = [], []
    for span in spans:
        while around and around[-1].end <= span.start + ROUNDING:
            around.pop()
        pairs.append((span, around[-1] if around else None))
        around.append(span)
    return pairs


def is_nested(spans) -> bool:
    """Whether of any two spans one lies within the other, or they lie side by side.

    Parameters
    ----------
    spans : list of Span
        Of one thread, in the order of `spans_of`.

    Returns
    -------
    bool
        Whether the spans of this thread can be drawn as a tree, as Perfetto draws them.
    """
    return all(
        parent is None or span.end <= parent.end + ROUNDING for span, parent in with_parents(spans)
    )


def self_times(spans) -> Counter:
    """How long each name was the innermost span.

    Defined in chapters/diagnosis/traces.

    Parameters
    ----------
    spans : list of Span
        Of one thread, nested, in the order of `spans_of`.

    Returns
    -------
    collections.Counter
        The name -> milliseconds in spans of that name, and in none inside them.
    """
    times = Counter()
    for span, parent in with_parents(spans):
        times[span.name] += span.end - span.start
        if parent:
            times[parent.name] -= span.end - span.start
    return times


def inside(outer, spans) -> list:
    """The spans of the same thread that start within another one.

    Parameters
    ----------
    outer : Span
        The one around them.
    spans : list of Span
        Those to choose from.

    Returns
    -------
    list of Span
        In their order, with ``outer`` if it is one of them.
    """
    return [
        s
        for s in spans
        if (s.rank, s.thread) == (outer.rank, outer.thread) and outer.start <= s.start < outer.end
    ]


def is_derivative(span) -> bool:
    """Whether autograd has computed a derivative here, as in AddmmBackward0.

    Parameters
    ----------
    span : Span
        Of any trace.

    Returns
    -------
    bool
        True of the derivative itself, and not of the line of autograd around it.
    """
    return span.name.endswith("Backward0") and ":" not in span.name


def computed(span, spans) -> Span:
    """A span up to the end of the last derivative in it: without waiting for other ranks.

    On a CPU only, where autograd computes in the thread that called backward.

    Parameters
    ----------
    span : Span
        As that of the label ``backward``.
    spans : list of Span
        Of the whole trace.

    Returns
    -------
    Span
        The same one if it has no derivative inside.
    """
    ends = [s.end for s in inside(span, spans) if is_derivative(s)]
    return span._replace(end=max(ends)) if ends else span


def steps_of(spans, number, rank) -> list:
    """The step of a rank, as the profiler labels it.

    Parameters
    ----------
    spans : list of Span
        Of the whole trace.
    number : int
        The step's, as the profiler counts.
    rank : int
        Whose step.

    Returns
    -------
    list of Span
        Empty if the step was not recorded.
    """
    return [s for s in spans if s.rank == rank and s.name == f"ProfilerStep#{number}"]


def step_lanes(spans, first=1, last=1) -> dict:
    """Steps of two ranks, as ``charts.timeline`` wants them.

    Drawn is what has one of these labels: load, forward, backward, update, log, and the exchange
    in the threads of gloo. A backward pass ends with its last derivative.

    Parameters
    ----------
    spans : list of Span
        Of the whole trace of two ranks.
    first, last : int
        The numbers of the first and the last step.

    Returns
    -------
    dict
        The lane, as "rank 0" or "gloo 0a" -> list of (start, end, kind), in milliseconds from the
        first step's beginning on. The two ranks stand together, between the threads of gloo.
    """
    lanes, begin = {}, min(steps_of(spans, first, rank)[0].start for rank in range(2))
    for rank in range(2):
        (first_step,), (last_step,) = (steps_of(spans, number, rank) for number in (first, last))
        shown = [
            computed(s, spans)
            for s in spans
            if s.rank == rank
            and s.name in KINDS
            and first_step.start <= s.start < last_step.end
            and s.end - s.start > LEAST_DRAWN
        ]
        shown.sort(key=lambda s: list(KINDS).index(s.name))  # for the same colours each time
        others = sorted({s.thread for s in shown} - {first_step.thread})
        names = {first_step.thread: f"rank {rank}"} | {
            thread: f"gloo {rank}{'abcdefgh'[i]}" for i, thread in enumerate(others)
        }
        for thread in sorted(names, key=lambda t: t == first_step.thread, reverse=rank == 1):
            lanes[names[thread]] = [
                (s.start - begin, s.end - begin, KINDS[s.name]) for s in shown if s.thread == thread
            ]
    return lanes
