"""What a process that will fork imports for the script: PyTorch, and what the script has of it.

The script gets it back where it imports it itself, see ``import_hook.withhold``. Other packages are
left to the script: some start threads or read files as they are imported, and those two do not.
"""

import ast
import os
import sys

from d2lmgpu.machine.imports import import_once
from d2lmgpu.watch.compiler import import_it_late

PACKAGES = ("torch", "torchvision")  # the others import the first
THREADS = "OMP_NUM_THREADS"  # what PyTorch reads as its libraries are loaded


def preload(environ, script) -> bool:
    """Import PyTorch, and what the script will import of `PACKAGES`; whether that went well.

    Where it did not, nothing is to be forked: a worker raises it, too, and tells.
    """
    sys.dont_write_bytecode = True
    os.environ[THREADS] = (os.environ | environ).get(THREADS, "1")
    import_it_late()
    try:
        import_once(["torch", "d2lmgpu.watch.worker", *imported_by(script)])
    except Exception:
        return False
    return True


def imported_by(script) -> list:
    """The modules of `PACKAGES` that a script's lines at its top level import."""
    try:
        with open(script, "rb") as file:
            body = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return []  # the worker tells
    names = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in body if isinstance(node, ast.ImportFrom) and not node.level]
    return [name for name in names if name.partition(".")[0] in PACKAGES]


def is_hidden(script) -> bool:
    """Whether the script's folder has a module of a name that is imported here already."""
    folder = os.path.dirname(script)
    names = {name.partition(".")[0] for name in sys.modules}
    files = (path for name in names for path in (f"{name}.py", f"{name}/__init__.py"))
    return any(os.path.exists(os.path.join(folder, file)) for file in files)
