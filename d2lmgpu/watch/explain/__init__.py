"""Why is the second device slower? The question, for a script and for a function."""

from d2lmgpu.machine.lazy_names import lazy_names

__all__ = ["explain"]
__getattr__ = lazy_names(__name__, {"explain": "function"})
