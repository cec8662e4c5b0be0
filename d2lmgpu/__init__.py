"""Helpers of the course Hands-On Multi-GPU Training.

Import one backend: ``from d2lmgpu import torch as d2l`` or ``from d2lmgpu import mxnet as d2l``.
This package itself imports neither framework.
"""

__version__ = "0.1.0"
