"""Numbers as they come from a training: arrays of one number, and values that are not finite.

A curve has a gap where its value is NaN or infinite, and the word "diverged" where that begins.
"""

from math import isfinite, nan
from numbers import Real

DIVERGED = "diverged"
NEXT = 0.09  # of the height of the axes, from one word to the next


def plain(value) -> object:
    """``value`` with Python's numbers for arrays of one number, also in lists and dicts."""
    if isinstance(value, dict):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if not isinstance(value, Real) and getattr(value, "shape", None) == ():
        return value.item()
    return value


def is_several(value) -> bool:
    """Whether ``value`` is a list or an array of numbers, and not one number."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def numbers(value) -> list:
    """One number, or those of a list or an array; each as Python's, None as it is."""
    return [
        entry if entry is None else float(entry.item() if hasattr(entry, "item") else entry)
        for entry in (value if is_several(value) else [value])
    ]


def is_number(value) -> bool:
    """Whether ``value`` is a number, NaN and infinity among them; a bool is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def gaps(values) -> list:
    """The values for Matplotlib: what is not finite is a gap."""
    return [float(value) if isfinite(value) else nan for value in values]


def finite(points) -> list:
    """Of (x, y, …) those that have a place."""
    return [point for point in points if isfinite(point[0]) and isfinite(point[1])]


def mark(axes, curves) -> None:
    """Write at the top of the axes where curves first are not finite: (xs, ys, colour) of each."""
    height = 1 - NEXT / 2
    for xs, ys, color in curves:
        at = next((x for x, y in zip(xs, ys) if not isfinite(y)), None)
        if at is not None:
            left, right = axes.get_xlim()
            look = dict(color=color, ha="right", va="center")
            place = axes.get_xaxis_transform()
            axes.text(min(max(at, left), right), height, DIVERGED, transform=place, **look)
            height -= NEXT
