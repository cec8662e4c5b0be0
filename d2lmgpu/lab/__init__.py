"""The training lab: change the number of devices and the batch size, and train again, live.

And predictions, which the reader makes before a run.
"""

from importlib import import_module

MODULES = {"TrainingLab": "view", "Prediction": "prediction", "predictions": "prediction"}
__all__ = list(MODULES)


def __getattr__(name):
    # The worker processes import this package, too, and must not wait for the widgets.
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        missing = error.name.partition(".")[0]
        if missing not in ("anywidget", "ipywidgets", "psygnal", "traitlets"):
            raise
        text = f'The training lab needs {missing}: pip install "d2lmgpu[lab]"'
        raise ModuleNotFoundError(text, name=missing) from error
