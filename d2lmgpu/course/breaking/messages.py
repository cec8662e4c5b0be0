"""What the process with hosts and training says of them: lines of JSON, drawn by ``web/``."""

from typing import TypedDict

Number = int | float | None


class Button(TypedDict):
    """A harm or a mend that is offered."""

    name: str
    """Of ``forecast.HARMS`` or ``MENDS``; pressed, it is a line to the process."""
    label: str
    seconds: Number
    """That it should cost; None while it cannot be pressed."""


class Picture(TypedDict):
    """What the hosts did in a stretch of time."""

    seconds: float
    """How long that is."""
    lanes: dict[str, list[tuple[str, float, float]]]
    """Host -> what it did, from when to when, in seconds since the picture's beginning."""


class Outcome(Picture):
    """A harm that was done, and what is known of its cost."""

    name: str
    title: str
    """The label of its button."""
    said: str
    """What was harmed; empty until it is."""
    at: float
    """When, in seconds since the picture's beginning."""
    rows: list[tuple[str, str, Number, Number]]
    """Of ``forecast.ROWS``: words, unit, predicted, measured; None for what is not known."""
    done: bool
    """Whether nothing more will be known."""


class State(TypedDict):
    """All that a live lab draws; a line has those fields that are new."""

    message: str
    buttons: list[Button]
    outcomes: list[Outcome]
    now: Picture | None
    """The last seconds; None before there are hosts."""
    runs: bool
    """Whether the process does: no line says that."""
