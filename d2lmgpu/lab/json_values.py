"""Values as JSON has them: finite numbers, text that can be sent."""

from math import isfinite
from numbers import Integral, Real


def finite(value) -> float | None:
    """``value`` as a number that JSON and JavaScript have; None for any other, and for None."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            return None
        if isfinite(number):
            return int(value) if isinstance(value, Integral) and abs(number) < 2**53 else number
    return None


def text(value) -> str:
    """``value`` as text that can be sent: half of a surrogate pair becomes a question mark."""
    return str(value).encode(errors="replace").decode()


def as_json(value) -> bool | dict | list | float | str | None:
    """``value`` as JSON has it, whatever it is made of."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {text(name): as_json(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(entry) for entry in value]
    return finite(value) if isinstance(value, Real) else text(value)
