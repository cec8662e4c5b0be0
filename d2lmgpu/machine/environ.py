"""The environment of this process, changed for a while."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def variable(name, value) -> Iterator[None]:
    """Within it, the environment variable ``name`` is ``value``."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
