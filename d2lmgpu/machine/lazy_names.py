"""Names of a package that are imported when they are first used.

Widgets need packages that not everybody has installed and that take time to import; worker
processes import the same packages of ours, and have no widgets.
"""

from collections.abc import Callable
from importlib import import_module

WIDGETS = ("anywidget", "ipywidgets", "psygnal", "traitlets")  # what `d2lmgpu[lab]` installs


def lazy_names(package: str, modules: dict[str, str]) -> Callable:
    """The ``__getattr__`` of ``package``, which imports a name from its module (PEP 562).

    ``modules`` says where each public name is: ``{"TrainingLab": "view"}``. Where a package for
    widgets is missing, the ModuleNotFoundError says what to install.
    """

    def import_name(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        except ModuleNotFoundError as error:
            missing = error.name.partition(".")[0]
            if missing not in WIDGETS:
                raise
            text = f'The training lab needs {missing}: pip install "d2lmgpu[lab]"'
            raise ModuleNotFoundError(text, name=missing) from error

    return import_name
