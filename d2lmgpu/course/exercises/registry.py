"""Which exercises there are, and what a checker raises."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from d2lmgpu.machine.checks import Need


class ExerciseError(ValueError):
    """An exercise that does not exist, or something that is no function in place of an answer."""


class Wrong(Exception):
    """What is wrong with an answer: ``reason`` is a word for programs, ``text`` is for people."""

    def __init__(self, reason, text):
        super().__init__(text)
        self.reason, self.text = reason, text


need = Need(ExerciseError)


@dataclass
class Exercise:
    """``checks`` are functions ``(answer, g)`` that return in words what is right, or raise Wrong.

    ``g`` is NumPy's generator: another seed is another set of shapes and values.
    """

    name: str
    hints: tuple[str, ...]
    checks: list = field(default_factory=list)
    slips: dict = field(default_factory=dict)  # reason -> a function that makes this mistake
    shown: int = 0  # hints so far


EXERCISES: dict[str, Exercise] = {}


def exercise(name, *hints) -> Callable:
    """A decorator: the function is a check of the exercise ``name``; the first brings the hints."""

    def register(function):
        EXERCISES.setdefault(name, Exercise(name, hints)).checks.append(function)
        return function

    return register


def names() -> list[str]:
    """The names of all exercises."""
    return list(EXERCISES)


def find(name) -> Exercise:
    """The exercise of that name; ExerciseError says which there are."""
    need.choice("The exercise", name, EXERCISES)
    return EXERCISES[name]


def hint(name) -> None:
    """Print the next hint of an exercise; after the last one the first follows."""
    entry = find(name)
    number = entry.shown % len(entry.hints)
    print(f"Hint {number + 1} of {len(entry.hints)}: {entry.hints[number]}")
    entry.shown += 1


def array(value, what, shape) -> np.ndarray:
    """``value`` as an array of 64-bit numbers; Wrong unless it has ``shape`` and only numbers."""
    if value is None:
        raise Wrong("none", f"{what} is None: does your function return it?")
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise Wrong("type", f"{what} is a {type(value).__name__}, and no array.") from None
    if numbers.shape != tuple(shape):
        text = f"{what} is {kind(numbers.shape)}; it should be {kind(tuple(shape))}."
        raise Wrong("shape", text)
    if not np.isfinite(numbers).all():
        text = f"{what} is not finite, NaN or infinite, in {(~np.isfinite(numbers)).sum()} places."
        raise Wrong("finite", text if shape else f"{what} is {numbers}.")
    return numbers


def kind(shape) -> str:
    """What has such a shape, in words."""
    if len(shape) < 2:
        return f"a list of {shape[0]}" if shape else "one number"
    return f"an array of shape {shape}"


def distance(answer, expected) -> float:
    """How far ``answer`` is from ``expected``, relative to the size of ``expected``."""
    return float(np.linalg.norm(answer - expected) / max(np.linalg.norm(expected), 1e-300))
