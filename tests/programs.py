"""The programs of ``tools/`` as modules. That folder has a ``notebook.py``, as Jupyter has.

It is the last on the path, for those of its modules that import each other.
"""

import importlib.util
import sys
from functools import cache
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.append(str(TOOLS))


@cache
def program(name):
    """``tools/name.py`` as a module; that one, where others have the name."""
    path = TOOLS / f"{name}.py"
    found = importlib.util.find_spec(name)
    if found and found.origin == str(path):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
