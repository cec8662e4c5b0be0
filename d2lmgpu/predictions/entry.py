"""What is known of a question, in Python and in the page's script (``web/predictions.js``)."""

from typing import Literal, TypedDict

SOURCES = ("measured", "simulated", "modelled", "counted")


class Locked(TypedDict):
    """What the reader predicts, as its file keeps it."""

    name: str
    """The page and the question, as below."""
    question: str
    """As the reader was asked."""
    unit: str
    """Of the number; empty for none."""
    value: float
    """In the unit of the question."""
    time: str
    """When it was locked: ISO 8601, with the offset from UTC."""
    shown: bool
    """Whether the outcome had been shown before, so that this is no prediction."""


class Outcome(TypedDict):
    """What happened."""

    value: float
    """In the unit of the question."""
    source: Literal["measured", "simulated", "modelled", "counted"]
    """How it is known."""
    time: str
    """When it was shown: ISO 8601, with the offset from UTC."""


class Known(TypedDict):
    """What the store knows of a question."""

    name: str
    """The page and the question: 'scratch-pytorch/two devices'."""
    question: str
    """As the reader was asked; empty where nothing is locked."""
    unit: str
    """Of both numbers, as 's'; empty for none."""
    predicted: Locked | None
    happened: Outcome | None
    remark: str
    """What is damaged, or could not be kept or done, and what to do; empty for nothing."""


class Entry(Known, total=False):
    """What one cell shows."""

    part: Literal["field", "outcome", "table"]
    """The question with its field, the prediction beside the outcome, or all predictions."""
    low: float
    high: float
    """What can be predicted, in the unit; the ends of the axis."""
    final: bool
    """Of a field: whether the outcome was shown, so that nothing can be taken back."""
    unsteady: str
    """Of an outcome: why it cannot be trusted; it then judges no prediction."""
    entries: list[Known]
    """Of a table, which has nothing else but its part."""


class Row(TypedDict):
    """A prediction as one row of the table that is handed in; what is not known is None."""

    name: str
    question: str
    unit: str
    predicted: float | None
    happened: float | None
    source: str | None
    error: float | None
    """In the unit: above 0 where the prediction was too high."""
    percent: float | None
    """The error in percent of the outcome; None for an outcome of 0."""
    locked: str | None
    """When: ISO 8601."""
    after_outcome: bool | None
    """Whether it was locked after the outcome had been shown."""
    remark: str
