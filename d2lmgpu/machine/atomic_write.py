"""Write a file so that it is there whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


def save(path: Path, content: bytes) -> None:
    """Write ``content`` at ``path``: whoever looks sees all of it or what was there before.

    When this returns, it is on the disk, even if the machine stops now. Each of several processes
    writes under a name of its own, ``.{name}.…``, then renames; one that is killed leaves that
    file. Raises OSError if it cannot be written.
    """
    with _written_beside(path, content) as temporary:
        os.replace(temporary, path)


def save_first(path: Path, content: bytes) -> bool:
    """As `save`, but only where there is no file: of several processes the first one's is kept.

    Returns whether it was this one. Raises OSError if it cannot be written.
    """
    with _written_beside(path, content) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _written_beside(path, content):
    """The content in a file of its own beside ``path``; what the block does lasts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):  # renamed, or never made
            temporary.unlink()
    if os.name == "posix":  # the new name, too, is on the disk
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
