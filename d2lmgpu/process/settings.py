"""What a worker takes on from the process that has called it, and the Python in which it runs."""

import contextlib
import hashlib
import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from d2lmgpu.process.logs import log_as, logged
from d2lmgpu.process.messages import Settings

# What Python runs with -c. Started with -m, it would take a random.py or a json.py in the working
# folder for its own. The first argument is the folder in which this package lies.
START = (
    "import sys; sys.path[:] = [*filter(None, sys.path), sys.argv.pop(1)]; import runpy; "
    'runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)'
)
STANDARD = os.path.dirname(os.__file__)  # the folder of Python's own modules
VERSION = ".".join(map(str, sys.version_info[:2]))
TITLES = {"torch": "PyTorch", "mxnet": "MXNet"}
PACKAGES = {"torch": ("torch",), "mxnet": ("mxnet", "mxnet-cu112")}  # one of which has it


class PythonError(ValueError):
    """No process can be started here, or not with the Python of a framework; or it is another."""


def run_module(module, python=sys.executable) -> list:
    """The command that runs a module of this package; its arguments follow."""
    return [python, "-u", "-c", START, str(Path(__file__).parents[2]), module]


def version_of(framework) -> str | None:
    """The framework's version, without importing it; None where it is not installed."""
    for package in PACKAGES[framework]:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return None


def versions(framework) -> dict:
    """What must be equal where a function is sent: Python, the framework, this package's code."""
    package, code = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        code.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return {"Python": VERSION, framework: version_of(framework), "d2lmgpu": code.hexdigest()[:8]}


def settings(environ) -> Settings:
    """The caller's environment (``environ``), import path, folder, PyTorch's default dtype, logs.

    Raises PythonError where that folder has been removed: the workers have to run in it.
    """
    torch = sys.modules.get("torch")  # which the caller need not have imported
    return {
        "environ": dict(environ),
        "path": import_path(),
        "prefixes": (sys.prefix, sys.base_prefix),
        "version": VERSION,
        "folder": _folder(),
        "logged": logged(),
        "dtype": str(torch.get_default_dtype()).removeprefix("torch.") if torch else None,
    }


def import_path() -> list:
    """The folders in which this Python looks for modules.

    A relative one is where Python found it: it looks there also when its own folder has changed.
    """
    finders = sys.path_importer_cache
    return [getattr(finders.get(entry), "path", str(entry)) for entry in sys.path]


def _folder():
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise PythonError(
            "The folder in which this Python runs was removed, and its workers would have to run "
            "there: change into one that is there (os.chdir), or restart the kernel in it."
        ) from None


def take_on(job) -> None:
    """Make the ``settings`` in ``job`` those of this process, but for the environment.

    Raises PythonError where a function of the caller could not be read.
    """
    if job["version"] != VERSION:
        raise PythonError(
            f"The notebook runs in Python {job['version']}, {sys.executable} is Python {VERSION}: "
            "functions can only be sent between equal ones. Make both environments with the same."
        )
    if sys.prefix in job["prefixes"]:
        sys.path[:] = job["path"]
    else:  # the caller's own modules, but not the libraries of its Python
        prefixes = tuple(os.path.join(prefix, "") for prefix in job["prefixes"])
        sys.path[:0] = [p for p in job["path"] if p not in sys.path and not p.startswith(prefixes)]
    os.chdir(job["folder"])
    tempfile.tempdir = None  # as the environment has it now
    log_as(job["logged"])
    if job["dtype"] and "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_default_dtype(getattr(torch, job["dtype"]))


def python_of(framework) -> str:
    """The Python that has ``framework``: ``hub/kernel.py`` may name one for each, else this.

    Raises PythonError where what it names is no program.
    """
    variable = variable_of(framework)
    python = os.environ.get(variable) or sys.executable
    if not os.access(python, os.X_OK):
        raise PythonError(
            f"{variable}={python!r} is no program: name the Python that has {framework} installed."
        )
    return python


def variable_of(framework) -> str:
    """The environment variable that names the Python with ``framework``."""
    return f"D2LMGPU_PYTHON_{framework.upper()}"
