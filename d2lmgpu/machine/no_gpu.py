"""What is common to all that stands in for a GPU which is not there: nothing takes time on it."""

from collections.abc import Callable

# Functions of torch.cuda and torch.accelerator that do nothing, and those that return 0.
NOTHING = [
    "empty_cache",
    "init",
    "manual_seed",
    "manual_seed_all",
    "reset_peak_memory_stats",
    "set_stream",
    "synchronize",
]
ZERO = [
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
]


class Nothing:
    """An event, a stream, or a device to be on: all is done at once."""

    cuda_stream = 0

    def __init__(self, *_, **__):
        pass

    def elapsed_time(self, other) -> float:
        """Milliseconds to another event: some, since a script may divide by them."""
        return 1.0

    def query(self) -> bool:
        """Whether all is done: it always is."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph is being recorded: none is."""
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, function) -> Callable:
        """Leave a function as it is, of which this is the decorator."""
        return function
