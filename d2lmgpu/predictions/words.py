"""An entry in words, where nothing can be drawn: a terminal, a notebook saved without widgets.

Pages and widgets say the same in ``web/predictions.js``; a test holds the two together.
"""

from d2lmgpu.figures.style import number
from d2lmgpu.predictions.entry import Entry, Known, Locked, Outcome


def text(entry: Entry) -> str:
    """What is shown in one cell."""
    if entry["part"] == "table":
        lines = [f"{known['name']}: {comparison(known)}" for known in entry["entries"]]
        return "\n".join(lines) or "No predictions yet."
    if entry["part"] == "outcome":
        return comparison(entry)
    sentences = [entry["question"]]
    if locked := entry["predicted"]:
        sentences.append(f"Your prediction: {exactly(locked, entry['unit'])}.")
    return " ".join(filter(None, (*sentences, entry["remark"])))


def comparison(entry: Known | Entry) -> str:
    """What was predicted, what happened, and how far apart the two are."""
    locked, outcome, unit = entry["predicted"], entry["happened"], entry["unit"]
    sentences = []
    if locked:
        sentences.append(f"You predicted {exactly(locked, unit)}.")
    if outcome:
        sentences.append(happened(outcome, unit))
    if entry.get("unsteady"):
        sentences.append(f"It was unsteady: {entry['unsteady']}. It judges no prediction.")
    elif locked and outcome:
        sentences.append(_judgement(locked, outcome))
        if locked.get("shown"):
            sentences.append("It was locked after the outcome had been shown.")
    elif outcome:
        sentences.append("No prediction was made before.")
    return " ".join(filter(None, (*sentences, entry["remark"])))


def happened(outcome: Outcome, unit: str) -> str:
    """The outcome and how it is known, as a sentence."""
    value = f"{number(outcome['value'])} {unit}".strip()
    return f"{outcome['source'].capitalize()}: {value}."


def exactly(locked: Locked, unit: str) -> str:
    """The prediction with its unit, in all digits that the reader wrote."""
    return f"{locked['value']:.15g} {unit}".strip()


def errors(locked: Locked, outcome: Outcome) -> tuple[float, float | None]:
    """The error of a prediction, and in percent of the outcome; above 0 where it was too high.

    The percentage of an outcome of 0 is None.
    """
    error = locked["value"] - outcome["value"]
    return error, 100 * error / abs(outcome["value"]) if outcome["value"] else None


def _judgement(locked, outcome):
    error, percent = errors(locked, outcome)
    if not error:
        return "Your prediction is right."
    share = "" if percent is None else f" ({number(abs(percent))} %)"
    return f"Your prediction is {number(abs(error))}{share} too {'high' if error > 0 else 'low'}."
