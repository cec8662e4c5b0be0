"""What every room says of a wrong argument: its name, what was given, and what is allowed."""

import math
from numbers import Integral, Real


def is_whole(value, least=0, most=2**53) -> bool:
    """Whether ``value`` is a whole number of Python or NumPy in that range; a bool is none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= value <= most


def is_count(value) -> bool:
    """Whether ``value`` is a whole number from 1 up."""
    return is_whole(value, 1)


def is_real(value, least=-math.inf) -> bool:
    """Whether ``value`` is a finite number, of at least ``least``; a bool is none."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and -1e300 < value < 1e300 and value >= least


def is_list(value) -> bool:
    """Whether ``value`` has an order and a length, and is neither text nor one array."""
    sized = hasattr(value, "__len__") and hasattr(value, "__iter__")
    return sized and not isinstance(value, (str, bytes, dict, set)) and not hasattr(value, "dtype")


class Need:
    """Checks of one room: each raises ``error`` unless what was given as ``name`` is right."""

    def __init__(self, error):
        self.error = error

    def __call__(self, right, name, value, allowed):
        """``allowed`` says, after "give", what would be right."""
        if not right:
            plain = value is None or isinstance(value, (str, Real, list, tuple, dict))
            shown = repr(value) if plain else f"a {type(value).__name__}"
            raise self.error(f"{name} is {shown[:200]}: give {allowed}.")

    def whole(self, name, value, least=1) -> None:
        """A whole number from ``least`` up that a float can hold."""
        self(is_whole(value, least), name, value, f"a whole number from {least} up")

    def real(self, name, value, least=0) -> None:
        """A finite number from ``least`` up."""
        self(is_real(value, least), name, value, f"a finite number from {least} up")

    def positive(self, name, value) -> None:
        """A finite number above 0."""
        self(is_real(value) and value > 0, name, value, "a finite number above 0")

    def kind(self, name, value, kind) -> None:
        """An instance of the class ``kind``."""
        self(isinstance(value, kind), name, value, f"a {kind.__name__}")

    def choice(self, name, value, choices) -> None:
        """One of the names in ``choices``."""
        right = isinstance(value, str) and value in choices
        self(right, name, value, f"one of {', '.join(choices)}")
