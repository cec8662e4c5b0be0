"""What the process that tries an answer gets, pickled; it reports ``Said`` events and ``Done``."""

from d2lmgpu.process import messages


class Job(messages.Settings):
    """For ``worker``."""

    name: str
    """Of the exercise."""
    seeds: list[int]
    """From each of which cases are drawn."""
    call: bytes
    """The answer, pickled."""
