"""A prediction beside what happened: as one row, and in the words of prediction.js."""

from d2lmgpu.figures.style import number

COLUMNS = (
    "name", "question", "unit", "predicted", "happened", "source", "error", "percent", "locked",
    "after_outcome", "remark",
)  # fmt: skip


def errors(guess, outcome):
    """``(error, percent of the outcome)``: above 0 where the prediction was too high.

    The percentage of an outcome of 0 is None.
    """
    error = guess - outcome
    return error, 100 * error / abs(outcome) if outcome else None


def row(entry):
    """A prediction as one flat dict; what is not known is None."""
    guess, outcome = entry["predicted"] or {}, entry["happened"] or {}
    both = guess and outcome
    error, percent = errors(guess["value"], outcome["value"]) if both else (None, None)
    values = (
        entry["name"], entry["question"], entry["unit"], guess.get("value"), outcome.get("value"),
        outcome.get("source"), error, percent, guess.get("time"), guess.get("shown"),
        entry["remark"],
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def said(entry):
    """What an entry says in words, for those who see no picture."""
    if entry["part"] == "table":
        lines = [f"{one['name']}: {compared(one)}" for one in entry["entries"]]
        return "\n".join(lines) or "No predictions yet."
    if entry["part"] == "outcome":
        return compared(entry)
    locked = f"Your prediction: {quantity(entry, 'predicted')}." if entry["predicted"] else ""
    return " ".join(filter(None, (entry["question"], locked, entry["remark"])))


def compared(entry):
    """What was predicted, what happened, and how far apart the two are."""
    guess, outcome, parts = entry["predicted"], entry["happened"], []
    if guess:
        parts.append(f"You predicted {quantity(entry, 'predicted')}.")
    if outcome:
        parts.append(f"{outcome['source'].capitalize()}: {quantity(entry, 'happened')}.")
    if entry.get("unsteady"):
        parts.append(f"It was unsteady: {entry['unsteady']}. It judges no prediction.")
    elif guess and outcome:
        error, percent = errors(guess["value"], outcome["value"])
        share = "" if percent is None else f" ({number(abs(percent))} %)"
        way = "high" if error > 0 else "low"
        far = f"{number(abs(error))}{share} too {way}" if error else "right"
        parts.append(f"Your prediction is {far}.")
        if guess.get("shown"):
            parts.append("It was locked after the outcome had been shown.")
    elif outcome:
        parts.append("No prediction was made before.")
    return " ".join(filter(None, (*parts, entry["remark"])))


def quantity(entry, what):
    """A number with its unit."""
    value = entry[what]["value"]
    exact = f"{value:.15g}"  # as the reader wrote it
    return f"{exact if what == 'predicted' else number(value)} {entry['unit']}".strip()
