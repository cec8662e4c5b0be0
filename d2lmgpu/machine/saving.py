"""Write a file so that it is there whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


def save(path: Path, content: bytes):
    """Write ``content`` at ``path``: whoever looks sees all of it or what was there before.

    When this returns, it is on the disk, even if the machine stops now. Each of several processes
    writes under a name of its own, ``.{name}.…``, then renames; one that is killed leaves that
    file. Raises OSError if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # renamed, or never made
            temporary.unlink()
    if os.name == "posix":  # the new name, too, is on the disk
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
