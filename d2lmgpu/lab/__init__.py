"""The training lab: change the number of devices and the batch size, and train again, live."""

__all__ = ["TrainingLab"]


def __getattr__(name):
    # The worker processes import this package, too, and must not wait for the widgets.
    if name == "TrainingLab":
        from d2lmgpu.lab.view import TrainingLab

        return TrainingLab
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
