"""What is the same in both backends; here: the framework is missing, and what d2l hands on."""

import importlib
import re
import sys
import types

from d2lmgpu.backend.refusals import VERSION, why_refused

INSTALL = {
    "torch": "pip install torch==2.13.0 (without a GPU: from the CPU index that PyTorch's install "
    "page names, which saves several GB)",
    "mxnet": 'pip install mxnet==1.9.1 "numpy<1.24" (Python up to 3.11; Linux or an Intel Mac)',
}
OLDEST_TORCH = 2, 4  # as in pyproject.toml


def not_installed(error) -> ImportError:
    """The error to raise where a backend's framework is missing: what to install.

    Any other missing module is passed through: then the framework is there, but damaged.
    """
    if error.name not in INSTALL:
        return error
    message = f"{error.name} is not installed here. To install it: {INSTALL[error.name]}"
    return ModuleNotFoundError(message, name=error.name)


def need_torch(version) -> None:
    """Raises ImportError if a version of PyTorch, as '2.13.0+cpu', is older than OLDEST_TORCH."""
    major_minor = tuple(map(int, re.match(r"(\d+)\.(\d+)", version).groups()))
    if major_minor < OLDEST_TORCH:
        oldest = "{}.{}".format(*OLDEST_TORCH)
        raise ImportError(
            f"PyTorch {version} is installed here, and the course needs {oldest} or newer: "
            f'pip install "torch>={oldest}", then restart the kernel.'
        )


def hand_on(name, module, ours) -> object:
    """``name`` from ``module`` (``d2l.torch`` or ``d2l.mxnet``), which is imported only now.

    Raises AttributeError for private names, for whatever trains, loads data or picks devices, and
    for all names of a d2l of another version, of which that is not known.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if why := why_refused(name, module):
        raise AttributeError(
            f"{name!r} is not handed on from {module}: {why}. Ours are: {', '.join(ours)}."
        )
    try:
        if module == "d2l.torch":
            _let_torchvision_import()
        value = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise AttributeError(
            f"{name!r} is d2l's, and {module} cannot be imported here ({error}). "
            f"Install it: pip install d2l=={VERSION} torchvision"
        ) from error
    if (version := sys.modules["d2l"].__version__) != VERSION:
        raise AttributeError(
            f"{name!r} is not handed on from d2l {version}: what its names do is known of "
            f"{VERSION} only. Install that: pip install d2l=={VERSION}"
        )
    return value


def _let_torchvision_import():
    """Let ``import torchvision`` succeed where its compiled operators do not fit this torch.

    Its module ``_meta_registrations`` asks for them at import; it matters only for compiling
    detection operators, so an empty one does.
    """
    import torch

    name = "torchvision._meta_registrations"
    try:
        torch.ops.torchvision.nms  # noqa: B018
        import torchvision  # noqa: F401
    except (AttributeError, RuntimeError):
        for module in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[module]
        sys.modules[name] = types.ModuleType(name)
