"""A folder that other accounts can reach. Those of pytest's each session of it closes to them."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

# Where every account may have a file: a machine's /tmp may be read-only.
PLACE = next((path for path in ("/tmp", "/var/tmp") if os.access(path, os.W_OK)), "/tmp")


@contextmanager
def open_folder(name):
    """A new folder, which every account may read; it goes with the block."""
    folder = Path(tempfile.mkdtemp(prefix=f"d2lmgpu-{name}-", dir=PLACE))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
