"""The training lab: change the number of devices and the batch size, and train again, live."""

__all__ = ["TrainingLab"]


def __getattr__(name):
    # The worker processes import this package, too, and must not wait for the widgets.
    if name == "TrainingLab":
        try:
            from d2lmgpu.lab.view import TrainingLab
        except ModuleNotFoundError as error:
            if error.name not in ("anywidget", "ipywidgets", "psygnal", "traitlets"):
                raise
            text = f'The training lab needs {error.name}: pip install "d2lmgpu[lab]"'
            raise ModuleNotFoundError(text, name=error.name) from error
        return TrainingLab
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
