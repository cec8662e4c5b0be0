"""One update with buckets that leave during the backward pass, beside one with all at the end.

When each bucket leaves and arrives is planned here, for every choice; the script beside this file
draws the plan up to a moment. Times are the caller's, modelled or measured, and are said to be so.
Without scripts words say how long both take.
"""

from dataclasses import dataclass

from d2lmgpu.figures.checks import is_named, is_series, need
from d2lmgpu.figures.motion import Moving
from d2lmgpu.figures.style import number
from d2lmgpu.machine.checks import is_list, is_real

KINDS = ("modelled", "measured")


@dataclass(frozen=True)
class Bucket:
    """Gradients of layers `first` to `last`, sent at once from `start` to `end`, in seconds."""

    first: int
    last: int
    num_bytes: float
    start: float
    end: float


def plan_buckets(layers, seconds, at_least: float) -> list[Bucket]:
    """The buckets of a backward pass, in the order in which they leave.

    The pass goes from the last layer to the first. A bucket is full once it has `at_least` so many
    bytes (0: each layer is a bucket of its own); a gradient is not cut, as DDP does not cut it. It
    leaves when it is full and the one before it is through. Times count from the start of the pass.

    layers: [(name, bytes, seconds of its backward pass)], the first layer first; seconds: of a
    number of bytes, how long their exchange takes. Raises FigureError for anything else.
    """
    _check(layers, seconds)
    need(at_least == float("inf") or is_real(at_least, 0), "at_least", at_least, "bytes from 0 up")
    buckets, now, last, size = [], 0.0, len(layers) - 1, 0.0
    for i in range(len(layers) - 1, -1, -1):
        _, num_bytes, backward = layers[i]
        now += backward
        size += num_bytes
        if size >= at_least or i == 0:
            start = max(now, buckets[-1].end if buckets else 0.0)
            took = seconds(size)
            need(is_real(took, 0), "seconds", took, "a time from 0 up")
            buckets.append(Bucket(i, last, size, start, start + took))
            last, size = i - 1, 0.0
    return buckets


def _check(layers, seconds) -> None:
    good = is_list(layers) and is_series(layers, _is_layer)
    need(good, "layers", layers, "[(name, bytes, seconds of its backward pass)], one at least")
    need(callable(seconds), "seconds", seconds, "a function of the bytes of an exchange")


def _is_layer(layer) -> bool:
    if not isinstance(layer, tuple) or len(layer) != 3:
        return False
    name, *numbers = layer
    return isinstance(name, str) and all(is_real(value, 0) for value in numbers)


class BucketTimeline(Moving):
    """A timeline of one update, for a bucket size that the reader moves, on a clock that plays.

    Parameters
    ----------
    layers : list
        [(name, bytes of its gradients, seconds of its backward pass)], the first layer first.
    exchanges : dict
        Text -> how many seconds an exchange of so many bytes takes, a function. The texts are
        offered as `label`.
    sizes : dict
        Text -> the bytes at which a bucket is full, in their order: the slider.
    about : str
        What the times are of, as text.
    start : str
        The size at first; the middle one if none is given.
    label : str
        What the texts of `exchanges` are.
    among : str
        The one of them at first; the first one if none is given.
    forward : float
        Seconds of the forward pass, which comes first.
    kind : str
        "modelled" or "measured": what is said of the times.

    Raises
    ------
    FigureError
        For anything else.
    """

    def __init__(
        self,
        layers,
        exchanges: dict,
        sizes: dict,
        about: str,
        start: str | None = None,
        label: str = "GPUs",
        among: str | None = None,
        forward: float = 0.0,
        kind: str = "modelled",
    ):
        good = is_named(exchanges, callable) and exchanges
        need(good, "exchanges", exchanges, "{text: a function of bytes}, one at least")
        need(is_named(sizes, is_real) and sizes, "sizes", sizes, "{text: bytes}, one at least")
        for name, text in (("about", about), ("label", label)):
            need(isinstance(text, str), name, text, "a text")
        need(is_real(forward, 0), "forward", forward, "seconds from 0 up")
        need.choice("kind", kind, KINDS)
        start = [*sizes][len(sizes) // 2] if start is None else start
        need.choice("start", start, tuple(sizes))
        among = next(iter(exchanges)) if among is None else among
        need.choice("among", among, tuple(exchanges))
        self.plans = {
            text: {
                "during": {
                    size: plan_buckets(layers, seconds, at_least)
                    for size, at_least in sizes.items()
                },
                "end": _at_the_end(layers, seconds),
            }
            for text, seconds in exchanges.items()
        }
        backward = sum(of for *_, of in layers)
        data = {
            "label": label,
            "kind": kind,
            "forward": forward,
            "layers": [[name, of] for name, _, of in layers],
            "start": start,
            "among": among,
            "plans": {
                text: {
                    "during": {size: _as_data(of) for size, of in plans["during"].items()},
                    "end": _as_data(plans["end"]),
                }
                for text, plans in self.plans.items()
            },
        }
        during, end = (
            forward + max(backward, buckets[-1].end)
            for buckets in (self.plans[among]["during"][start], self.plans[among]["end"])
        )
        words = (
            f"{among} {label}, buckets of {start}: {number(1000 * during)} ms with buckets that "
            f"leave during the backward pass, {number(1000 * end)} ms with all at the end, {kind}."
        )
        super().__init__("buckets", data, words, about)


def _at_the_end(layers, seconds) -> list[Bucket]:
    """One bucket with everything, which is full when the pass is over."""
    return plan_buckets(layers, seconds, float("inf"))


def _as_data(buckets) -> list:
    return [[of.first, of.last, of.num_bytes, of.start, of.end] for of in buckets]
