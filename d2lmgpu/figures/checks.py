"""What can be drawn: the shapes in which pictures are given their numbers."""

from d2lmgpu.machine.checks import Need, is_list, is_real


class FigureError(ValueError):
    """A picture cannot be drawn of this: the message says what was given and what is allowed."""


need = Need(FigureError)


def is_series(values, is_one=is_real) -> bool:
    """Whether ``values`` is a list or an array, not empty, in which ``is_one`` of each."""
    listed = is_list(values) or getattr(values, "ndim", 0) > 0
    return listed and len(values) > 0 and all(map(is_one, values))


def is_named(values, is_one) -> bool:
    """Whether ``values`` is a dictionary, perhaps empty, in which ``is_one`` of each value."""
    return isinstance(values, dict) and all(map(is_one, values.values()))


def is_curve(points, is_x=is_real, is_y=is_real) -> bool:
    """Whether ``points`` is {x: y}, perhaps empty, in which each has a place on its axis."""
    return is_named(points, is_y) and all(map(is_x, points))


def is_span(span) -> bool:
    """Whether it is (start, end, what), start up to end."""
    start, end, what = span if isinstance(span, tuple | list) and len(span) == 3 else (0, 0, None)
    return is_real(start) and is_real(end) and start <= end and isinstance(what, str)
