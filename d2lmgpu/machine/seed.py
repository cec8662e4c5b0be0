"""The seed of everything that is drawn, which processes that are started later have, too."""

import os

VARIABLE = "D2LMGPU_SEED"


def set_seed(n: int) -> None:
    """Set the seed, 0 to 2**32 - 1, from which every later ``DataIter`` draws its order.

    It stands in the environment, so that processes which are started later have it, too.
    """
    os.environ[VARIABLE] = str(n)


def is_set() -> bool:
    """Whether somebody has set a seed, here or in the process that started this one."""
    return VARIABLE in os.environ


def current_seed() -> int:
    """The seed that is set; 0 where none is. Raises ValueError for one that is no such number."""
    value = os.environ.get(VARIABLE, "0")
    if not value.isdecimal() or int(value) >= 2**32:
        raise ValueError(f"{VARIABLE}={value!r}: give a whole number from 0 to 2**32 - 1.")
    return int(value)
