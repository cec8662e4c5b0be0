"""The PyTorch backend: ``from d2lmgpu import torch as d2l``.

The same public names and signatures as ``d2lmgpu.mxnet``. Without a GPU a device is one CPU
core: torch computes with one thread, and ``parallel`` gives every device a thread of its own.
"""

import os

from d2lmgpu.backend import hand_on, need_torch, not_installed

try:
    import torch
except ModuleNotFoundError as error:
    raise not_installed(error) from error
else:
    need_torch(torch.__version__)  # before names that an older one lacks

from d2lmgpu.collectives.execution import shard_sizes
from d2lmgpu.figures.animator import Animator
from d2lmgpu.machine.devices import VARIABLE, check_run
from d2lmgpu.machine.memory import keep_freed_memory
from d2lmgpu.machine.timing import Accumulator, Timer
from d2lmgpu.records.run import Run
from d2lmgpu.torch.devices import (
    cpu,
    devices,
    gpu,
    num_gpus,
    parallel,
    profile,
    sharing,
    synchronize,
    try_all_gpus,
    try_gpu,
)
from d2lmgpu.torch.networks import Residual, lenet, resnet18
from d2lmgpu.torch.training import (
    accuracy,
    allreduce,
    array,
    balance,
    evaluate_accuracy_gpu,
    evaluate_accuracy_gpus,
    forward_backward,
    get_params,
    load_data_fashion_mnist,
    load_data_mnist,
    seed,
    sgd,
    split_batch,
    train_batch,
)

__all__ = [
    "Accumulator",
    "Animator",
    "Residual",
    "Run",
    "Timer",
    "accuracy",
    "allreduce",
    "array",
    "balance",
    "check_run",
    "cpu",
    "devices",
    "evaluate_accuracy_gpu",
    "evaluate_accuracy_gpus",
    "forward_backward",
    "get_params",
    "gpu",
    "lenet",
    "load_data_fashion_mnist",
    "load_data_mnist",
    "num_gpus",
    "parallel",
    "profile",
    "resnet18",
    "seed",
    "sgd",
    "shard_sizes",
    "sharing",
    "split_batch",
    "synchronize",
    "train_batch",
    "try_all_gpus",
    "try_gpu",
]

if not torch.cuda.is_available() or "cpu" in os.environ.get(VARIABLE, ""):
    torch.set_num_threads(1)  # a device is one core; threads of one shard must not spin on another
    keep_freed_memory()  # as PyTorch does on a GPU


def __getattr__(name):
    """Hand on d2l's pure helpers; what trains, loads data or picks devices is ours or raises."""
    return hand_on(name, "d2l.torch", __all__)
