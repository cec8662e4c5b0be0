"""The programs of ``tools/`` as modules. That folder has a ``notebook.py``, as Jupyter has."""

import importlib.util
from functools import cache
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"


@cache
def program(name):
    """``tools/name.py`` as a module, which nobody else finds under that name."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
