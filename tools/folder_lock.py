"""Runs a command as the only one in this folder: python tools/folder_lock.py "make book" COMMAND…

`make book` and `make test` write the same files. A second one is refused, and told of the first.
"""

import fcntl
import os
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / ".cache" / "folder.lock"


def main(name: str, *command: str) -> None:
    """Become ``command``; what it has opened here is held until it and its children are over."""
    LOCK.parent.mkdir(exist_ok=True)
    file = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(file, 100).decode().strip() or "another"
        sys.exit(f"{name}: {other} is at work in this folder. Wait for its end, or interrupt it.")
    except OSError as error:  # a disk without locks
        print(f"{name}: {error.strerror}, so nothing keeps a second one away", file=sys.stderr)
    os.ftruncate(file, 0)
    os.write(file, f"{name} (process {os.getpid()})\n".encode())
    os.set_inheritable(file, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
