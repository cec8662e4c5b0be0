"""What a lab sends, field by field: to its worker a job, pickled; to the browser all else.

That is made by ``wire`` and drawn by ``web/``. A number that is not known, or not finite, is
None.
"""

from typing import TypedDict

from d2lmgpu.process import messages

Number = int | float | None
Point = tuple[Number, Number, int | None, Number]
"""Epochs, seconds from the call of ``train``, training images seen, value."""


class Job(messages.Settings):
    """For the worker of a run."""

    call: bytes
    """The function and its arguments, pickled."""
    num_gpus: int | None


class RunSettings(TypedDict):
    """What was chosen for a run."""

    train: str
    """The name of the function that trains."""
    num_gpus: Number
    batch_size: Number
    """Examples of one update, over all devices."""
    lr: Number
    """The learning rate, for that batch."""
    num_epochs: Number
    """None for what ``train`` has by itself."""


class Settings(RunSettings):
    """What is chosen for the next run."""

    scale_lr: bool
    """Whether the learning rate follows the batch."""


class About(TypedDict):
    """What there is to choose from."""

    trains: list[str]
    """Names of functions."""
    takes_epochs: bool
    """Whether ``train`` has a parameter ``num_epochs``."""
    most: int
    """Devices that can be asked for."""
    kind: str | None
    """"gpu" or "cpu"; None while nobody knows."""
    devices: int | None
    """How many there are; more are simulated."""
    note: str
    cell: str
    """Code of a cell that trains with these settings."""


class Forecast(TypedDict):
    """What the next run should give, modelled."""

    samples_per_second: Number
    step_seconds: Number
    communication_share: Number
    """Of a step, from 0 to 1."""
    best_num_gpus: int
    error: list[float]
    """Of such forecasts, the lowest and the highest, in shares of a step's time, from records."""
    fit_error: Number
    """How far from a line the measurements were that it rests on, in shares of a step's time."""


class State(TypedDict):
    """Whether a run goes on, and what is said of it."""

    status: str
    message: str
    details: str
    printed: messages.Output
    wrong: dict[str, str]
    """Name of a setting -> what is wrong with it."""
    hint: str
    forecast: Forecast | None
    forecasts: list[tuple[int, Number]]
    """Devices, and how many times as fast as one: modelled."""
    can_measure: bool
    """Whether a forecast can be made of measurements here."""
    measuring: messages.Progress | None


class Run(TypedDict):
    """A run that goes on or has ended."""

    id: int
    name: str
    row: int | None
    """Of the table; None while it goes on."""
    status: str
    """"running", "finished", "stopped" or "failed"."""
    timing: str
    """"measured", "simulated", or empty while nobody knows."""
    unsteady: bool
    """Whether its times do not tell how fast it is, see ``records.steady``."""
    diverged: bool
    settings: RunSettings
    curves: dict[str, list[Point]]
    """Label -> at most 150 points."""
    forecast: Number
    """Samples a second, modelled before it began."""
    where: dict[str, Number] | None
    """Part of a step (``process.step_parts``) -> seconds a step, the mean over devices."""
    memory: list[int] | None
    """Bytes that each device has taken."""


class Span(TypedDict):
    """What one device did."""

    what: str
    """A part of a step."""
    start: Number
    end: Number
    """Seconds from the call of ``train``."""


class Live(TypedDict):
    """The run that goes on."""

    run: Run
    progress: Number
    """From 0 to 1."""
    epoch: int
    """The present one, from 1; 0 before it has begun."""
    num_epochs: Number
    speed: Number
    """Samples a second."""
    seconds_left: Number
    lanes: list[list[Span]]
    """Of each device the last steps that were timed."""


class TableRow(TypedDict):
    """Repeats of a run, taken together."""

    row: int
    """Its number, from 1."""
    runs: list[int]
    """Ids."""
    alone: bool
    """Whether it lacks a run on one device to be compared with."""
    cells: dict[str, str]
    """Column -> text."""


class Table(TypedDict):
    """All runs."""

    columns: list[str]
    rows: list[TableRow]
    remarks: list[str]
    baseline: int | None
    """The row that the reader has chosen; None where the lab chooses."""


class Speedup(TypedDict):
    """How many times as fast as its baseline a row is; only of what was measured and explained."""

    row: int
    num_gpus: int
    batch_size: int
    over_num_gpus: int
    """Devices of the baseline."""
    median: float
    low: float
    high: float
