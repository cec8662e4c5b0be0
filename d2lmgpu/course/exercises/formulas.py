"""Exercises with one right value for each case, and mistakes that others have made there."""

import copy
import inspect
import reprlib

import numpy as np

from d2lmgpu.course.exercises.registry import EXERCISES, Wrong, array, exercise

SHORT = reprlib.Repr()
SHORT.maxlist = 9
SHORT.maxother = 60
SHORT.maxstring = 60


def formula(name, *hints, cases, right, slips, what, says, tolerance=1e-9, sized=True) -> None:
    """An exercise: ``answer(*case)`` has to be ``right(*case)`` for the cases that are drawn.

    ``cases(g)`` are lists of arguments, ``g`` NumPy's generator. ``slips`` is
    ``{reason: (function, words)}``: a wrong answer that gives what such a function gives is told
    these words. ``what`` is the value, ``says`` what is right in the end. Values are numbers or
    lists of them; ``tolerance`` is relative. Not ``sized`` are numbers that name something, as a
    rank: how far off they are means nothing.
    """

    @exercise(name, *hints)
    def values(answer, g):
        drawn = cases(g)
        expected = [np.asarray(right(*case), dtype=np.float64) for case in drawn]
        answers = []
        for case, value in zip(drawn, expected, strict=True):
            result = answer(*copy.deepcopy(case))
            try:
                answers.append(array(result, what, value.shape))
            except Wrong as wrong:
                raise Wrong(wrong.reason, f"{shown(right, case)}: {small(wrong.text)}") from None
        for case, numbers, value in zip(drawn, answers, expected, strict=True):
            if not close(numbers, value, tolerance):
                reason, words = slip(slips, drawn, answers, tolerance)
                if numbers.ndim == 1:
                    wrong = [
                        i for i in range(len(numbers)) if not close(numbers[i], value[i], tolerance)
                    ]
                    words = f"The first wrong one is at index {wrong[0]}. {words}"
                text = f"{shown(right, case)}: {small(what)} is {far(numbers, value, sized)}."
                raise Wrong(reason, f"{text} {words}".strip())
        return says

    EXERCISES[name].slips = {reason: function for reason, (function, _) in slips.items()}


def slip(slips, drawn, answers, tolerance) -> tuple:
    """``(reason, words)`` of the mistake that explains all that was found."""
    for reason, (function, words) in slips.items():
        mistaken = [np.asarray(function(*case), dtype=np.float64) for case in drawn]
        if all(
            close(answer, mistake, tolerance)
            for answer, mistake in zip(answers, mistaken, strict=True)
        ):
            return reason, words
    return "value", ""


def small(text) -> str:
    """A text that goes on in the middle of a sentence."""
    return text[0].lower() + text[1:]


def close(answer, value, tolerance) -> bool:
    """Whether two numbers, or two lists of one length, are equal but for rounding."""
    return answer.shape == value.shape and np.allclose(answer, value, tolerance, 1e-12)


def far(answer, value, sized) -> str:
    """How far off a value is, in words that do not give the right one away."""
    size = np.linalg.norm(value) if sized else 0
    off = f"{np.linalg.norm(answer - value) / size:.1%} off" if size else "not right"
    return f"{answer:.4g}, {off}" if answer.ndim == 0 else off


def shown(function, case) -> str:
    """The arguments of one case, by their names."""
    names = inspect.signature(function).parameters
    return ", ".join(f"{n} = {SHORT.repr(rounded(v))}" for n, v in zip(names, case, strict=True))


def rounded(value) -> object:
    """Fractions with as many digits as a reader wants to see."""
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    return float(f"{value:.4g}") if isinstance(value, float) else value
