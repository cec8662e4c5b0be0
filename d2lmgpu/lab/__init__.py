"""The training lab: change the number of devices and the batch size, and train again, live."""

from d2lmgpu.machine.lazy_names import lazy_names

__all__ = ["TrainingLab"]
__getattr__ = lazy_names(__name__, {"TrainingLab": "view"})
