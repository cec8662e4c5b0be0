"""What is the same in both backends; here: the framework is missing, and what d2l hands on."""

import importlib
import re
import sys
import types

INSTALL = {
    "torch": "pip install torch==2.13.0 (without a GPU: from the CPU index that PyTorch's install "
    "page names, which saves several GB)",
    "mxnet": 'pip install mxnet==1.9.1 "numpy<1.24" (Python up to 3.11; Linux or an Intel Mac)',
}
OLDEST_TORCH = 2, 4  # as in pyproject.toml

# d2l's own versions of these would silently run on one device or fetch data of their own.
_NOT_HANDED_ON = re.compile(
    r"train|load|read_|download|evaluate|predict|gpu|cpu|device|Trainer|Data|MNIST|get_data"
)


def not_installed(error):
    """The error to raise where a backend's framework is missing: what to install.

    Any other missing module is passed through: then the framework is there, but damaged.
    """
    if error.name not in INSTALL:
        return error
    message = f"{error.name} is not installed here. To install it: {INSTALL[error.name]}"
    return ModuleNotFoundError(message, name=error.name)


def need_torch(version):
    """Raises ImportError if a version of PyTorch, as '2.13.0+cpu', is older than OLDEST_TORCH."""
    found = tuple(map(int, re.match(r"(\d+)\.(\d+)", version).groups()))
    if found < OLDEST_TORCH:
        oldest = "{}.{}".format(*OLDEST_TORCH)
        raise ImportError(
            f"PyTorch {version} is installed here, and the course needs {oldest} or newer: "
            f'pip install "torch>={oldest}", then restart the kernel.'
        )


def hand_on(name, module, ours):
    """``name`` from ``module`` (``d2l.torch`` or ``d2l.mxnet``), which is imported only now.

    Raises AttributeError for private names and for whatever trains, loads data or picks devices.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if _NOT_HANDED_ON.search(name):
        raise AttributeError(
            f"{name!r} is not handed on from {module}: it would choose its own data or run on one "
            f"device. Ours are: {', '.join(ours)}."
        )
    try:
        if module == "d2l.torch":
            _let_torchvision_import()
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise AttributeError(
            f"{name!r} is d2l's, and {module} cannot be imported here ({error}). "
            "Install it: pip install d2l==1.0.3 torchvision"
        ) from error


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
