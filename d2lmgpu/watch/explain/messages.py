"""What ``explain`` reports of a rank, beside what every watched process does (``watch.messages``).

Times are seconds of ``time.monotonic``; a line is "file:line" of the script. What is counted is
counted in the measured steps.
"""

from typing import Literal, TypedDict


class NothingMeasured(TypedDict):
    """Of a run with too few steps."""

    measured: Literal[0]


class SetUp(TypedDict):
    """Threads and cores of the thread that trains, and what has set them."""

    framework: Literal["torch", "mxnet"]
    cores: list[int] | None
    """Their numbers; None where the system does not say."""
    threads: int
    set: dict[str, str]
    """"threads", "cores" or a variable of the environment -> the line that has set it."""
    environ: dict[str, str]
    """Those variables that decide on threads and cores, see ``parts``."""


class Loader(TypedDict):
    """A DataLoader."""

    where: str | None
    """The line that made it."""
    of: int | None
    """Rows of its data; here and below None for what is not known."""
    mine: int | None
    """Rows that it takes of them."""
    batch: int | None
    """Rows."""
    workers: int
    epochs: int
    """That were begun."""


class ExplainReport(SetUp):
    """Of one rank, whose steps were measured."""

    measured: int
    """Steps."""
    measured_steps: list[tuple[float, float, dict[str, tuple[float, float, float]]]]
    """Start, end, {part of a step: seconds of wall time, on a core, and queued for one}."""
    measured_backwards: int
    """Backward passes."""
    spans: list[tuple[int, str, float, float]]
    """Number of the step, part, start, end; of the last steps."""
    faults: int
    """Pages of memory that the system had to give the process."""
    rows: int
    """Of the inputs."""
    elements: int
    """Values in these rows."""
    prints: list[int]
    """Checksums of the first inputs: equal ones for equal inputs."""
    exchanging: int
    """Backward passes after which DistributedDataParallel exchanged gradients."""
    exchanged: int
    """Bytes of gradients or weights that went through collectives."""
    calls: list[tuple[str, str | None, int, int, float, float]]
    """Collectives of the script itself: kind, line, number, bytes, seconds in them without those
    queued for a core, and of these the seconds blocked."""
    operations: float
    """Of PyTorch, a step."""
    doubles: float
    """In float64, a share of them from 0 to 1."""
    casts: float
    """Conversions of types, a step."""
    lines: list[tuple[str, str | None, int]]
    """Part, line, how often it was seen there; 0 for the line that entered the part first."""
    others: list[tuple[float, str, int]]
    """Of further Python threads: seconds of the thread on a core, line, how often it was seen."""
    python_threads: float
    """Seconds of all of them on a core."""
    ddp: bool
    """Whether DistributedDataParallel wraps a network."""
    data_parallel: str | None
    """The line that made a DataParallel."""
    gradient_bytes: int
    """Of an update."""
    loaders: list[Loader]


class _Rank(ExplainReport):
    rank: int
    distributed: bool
    """Whether it exchanges anything with others."""


class RankReport(_Rank, total=False):
    """What a ``Summary`` has of a rank: of a process, or of a device that is a thread."""

    in_threads: bool
    """Whether the ranks are threads of one process."""
    costs: list[tuple[str, str | None, float | None]]
    """What costs on a GPU: name, line, times a step, see ``cuda.costs``; of a script only."""


class DevicesReport(TypedDict):
    """Of a function, of which each device is a rank."""

    devices: list[RankReport]
    """Empty where none was seen."""
