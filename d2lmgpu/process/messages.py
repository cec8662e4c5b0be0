"""What processes get from the one that has started them, pickled, and what they report to it.

A job is read once. An event is a line of JSON, see ``events``; ``EVENTS`` has the type of each
kind. ``time`` is that of ``time.monotonic``, in seconds, where ``events.report`` made the event.
"""

from typing import Any, Literal, TypedDict

from d2lmgpu.process.worker_group import WorkerGroup


class Settings(TypedDict):
    """What of the caller a worker takes on, see ``settings.take_on``."""

    environ: dict[str, str]
    path: list[str]
    """Folders in which modules are looked for."""
    prefixes: tuple[str, str]
    """``sys.prefix`` and ``sys.base_prefix``."""
    version: str
    """Of Python."""
    folder: str
    """In which the caller runs."""
    logged: dict[str, Any] | None
    """The caller's logging, see ``logs``."""
    dtype: str | None
    """PyTorch's default type, as "float32"; None where PyTorch is not imported."""


class LaunchJob(Settings):
    """For the workers of ``launch`` on one host."""

    call: bytes
    """The function and its arguments, pickled."""
    group: WorkerGroup
    """All processes, and what each of them does."""
    processes: list[str]
    """Names of those on this host."""
    world_size: int
    """Workers on all hosts."""
    address: str
    """At which the first host is reached."""
    store: list | None
    """Address and port at which ranks of several hosts meet; None on one host."""


class _Kind(TypedDict):
    event: str
    """Of which kind it is."""


class Event(_Kind, total=False):
    """What all of them have."""

    time: float


class Ready(Event):
    """A lab's worker has imported what a run needs."""

    kind: Literal["gpu", "cpu"]
    devices: int
    """How many can be measured; more are simulated."""


class Started(Event):
    """The function of a run is about to be called."""

    sharing: str
    """How the devices share time: "one device", "in parallel" or "simulated"."""


class Loss(Event):
    """The loss of a batch."""

    x: float
    """Epochs that had passed."""
    loss: float
    """The mean over its examples."""


class _Points(Event):
    points: list[tuple[int, Any, Any]]
    """Number of the curve, x, y."""
    legend: list[str]


class Drawn(_Points, total=False):
    """``Animator`` has drawn points; settings of its axes, those that it was given."""

    xlabel: str
    ylabel: str
    xlim: list[float]
    ylim: list[float]
    xscale: str
    yscale: str


class Steps(TypedDict):
    """What was timed of the steps since the last event, see ``lanes``."""

    number: int
    samples: int
    """Of the steps that were timed."""
    seconds: dict[str, float]
    """Part of a step -> seconds, the mean over devices, of all these steps."""
    total: float
    """Seconds of all these steps."""
    lanes: list[tuple[int | None, str, float, float]]
    """Device (None: all of them), part, start and end, of the last steps."""
    memory: list[int] | None
    """Bytes that each device has taken."""


class Batch(Event):
    """A batch for training is done."""

    epoch: int
    """From 1."""
    done: int
    of: int
    """Examples of the epoch, so far and all."""
    steps: Steps | None
    """None where nobody listens."""


class Output(TypedDict):
    """What a run prints."""

    lines: int
    """So far."""
    text: str
    """Their end."""


class Printed(Event, Output):
    """A run has printed."""


class _Status(Event):
    status: Literal["finished", "stopped", "failed"]


class Outcome(_Status, total=False):
    """How a run has ended."""

    message: str
    """A sentence or two."""
    traceback: str
    note: str
    """What of the return value is not shown."""
    num_samples: int | None
    accuracies: list[float]
    seconds: list[float]
    """Of each epoch."""
    others: float | None
    """Cores that other programs had meanwhile, on the average."""


class Progress(TypedDict):
    """Of a calibration."""

    done: float
    """From 0 to 1."""
    message: str
    """What is being measured."""


class Measuring(Event, Progress):
    """A calibration goes on."""


class Verdict(Event):
    """What the check of an exercise found."""

    right: bool
    text: str
    reason: str | None


class Done(Event):
    """The workers of this host have ended well, and servers may end."""


class Protection(Event):
    """How the reader's files are kept from a watched script, see ``watch.files``."""

    kind: str
    why: str


class Left(Event):
    """What a worker could not leave in the folder, which takes no file any more."""

    name: str
    """Of the file; what would be in it are further fields."""


class Exit(Event):
    """Everything has ended: the last event."""

    codes: list[int | None] | None
    """Exit codes of the workers, None for one that was ended; None where the supervisor was."""
    supervisor: int | None
    """Its own exit code; None where it ended well, or the guard was killed, too."""


EVENTS = {
    "ready": Ready,
    "started": Started,
    "loss": Loss,
    "point": Drawn,
    "batch": Batch,
    "printed": Printed,
    "outcome": Outcome,
    "measuring": Measuring,
    "verdict": Verdict,
    "done": Done,
    "protection": Protection,
    "left": Left,
    "exit": Exit,
}
