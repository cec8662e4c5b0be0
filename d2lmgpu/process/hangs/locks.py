"""Whether a wait for a lock can never end, as Linux tells; elsewhere that is never said.

Python waits for a lock, as a queue and an event do, by the system's futex: without a timeout, and
for a lock that only threads of the same process can release (``man 2 futex``, ``man 5 proc``).
"""

import contextlib
import os
import platform
import signal

FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())  # its number as a system call
WAIT, WAIT_BITSET, PRIVATE, OPERATION = 0, 9, 128, 127


def waits_for_ever(pid) -> bool:
    """Whether the first thread of a process waits, without a timeout, for one of its threads."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        number, *arguments = file.read().split()
        if number == str(FUTEX):
            _, operation, _, timeout = (int(argument, 16) for argument in arguments[:4])
            waits = operation & OPERATION in (WAIT, WAIT_BITSET)
            return waits and bool(operation & PRIVATE) and not timeout
    return False


def interrupted_later() -> bool:
    """Whether a timer of this process will send it a signal."""
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def stuck_children(pid) -> list:
    """Processes that the first thread of this one has started, as a loader its workers, whose only
    thread waits for a lock: nobody can release it."""
    stuck = []
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if len(os.listdir(f"/proc/{child}/task")) == 1 and waits_for_ever(child):
                    stuck.append(int(child))
    return stuck
