"""What a watched run is given, as JSON, and what each of its processes reports at its end."""

from typing import Any, Literal, TypedDict


class Settings(TypedDict):
    """For each worker, in its environment."""

    view: bool
    """Whether it is in a view of the files; else what it writes is diverted."""
    begun: float
    """When the run began, on the clock of ``time.monotonic``."""
    folder: str
    """Where it leaves its report."""
    observer: str
    """The name of its module."""
    options: dict[str, Any]
    """For the observer."""
    script: str
    own: str
    """A file of the reader's code: lines of it and of its folder are named."""
    framework: Literal["torch", "mxnet"]
    """Whose import starts the watch."""
    limits: dict[str, float]
    """See ``run.Limits``."""


class Job(TypedDict):
    """For the supervisor of a watched script, see ``ranks``."""

    command: list[str]
    """The script and its arguments."""
    processes: int
    """Workers; 0 where the reader's files cannot be protected."""
    settings: Settings
    environ: dict[str, str]
    """Added to the environment."""
    cwd: str
    unprotected: bool
    """Whether it runs also where nothing protects the reader's files."""


class Error(TypedDict):
    """What was raised."""

    text: str
    where: str | None
    """"file:line" of the script."""


class _Ended(TypedDict):
    rank: int
    world: int
    """As torch.distributed had them, or those of its environment."""
    end: Literal[
        "finished",
        "raised",
        "exit",
        "steps",
        "seconds",
        "wall",
        "records",
        "refused",
        "sharded",
        "unreported",
    ]
    steps: int
    """Updates; of a script without an optimizer of torch.optim, backward passes."""
    backwards: int
    """Backward passes."""
    optimizer: bool
    """Whether torch.optim made the updates."""
    distributed: bool
    """Whether ``init_process_group`` was called."""
    spawned: bool
    """Whether the script itself has started the process."""
    imported: bool
    """Whether the framework was."""
    mxnet: bool
    """Whether MXNet was, if that is another."""


class Report(_Ended, total=False):
    """Of one process; an observer adds fields of its own, see ``explain.messages``."""

    error: Error
    """Of "raised"; of "unreported" what an observer has raised."""
    code: int
    """Of "exit"."""
    package: str
    where: str | None
    """Of "refused": what the script imports, and at which line."""
    cuda: str | None
    """The line that first asked for a GPU."""
