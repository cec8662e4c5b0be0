"""The MXNet backend: ``from d2lmgpu import mxnet as d2l``.

The same public names and signatures as ``d2lmgpu.torch``. Without a GPU a device is one CPU
core: MXNet computes with one thread, and ``parallel`` gives every device a thread of its own.
"""

import os

# A device is one core, whatever a cluster has set. MXNet reads this when it is imported, so it must
# come before.
os.environ["OMP_NUM_THREADS"] = "1"

from d2lmgpu.backend import hand_on, not_installed
from d2lmgpu.machine import cuda_libraries
from d2lmgpu.machine.memory import keep_freed_memory

cuda_libraries.preload()
keep_freed_memory()

try:
    from mxnet import npx
except ModuleNotFoundError as error:
    raise not_installed(error) from error

from d2lmgpu.collectives.execution import shard_sizes
from d2lmgpu.figures.animator import Animator
from d2lmgpu.machine.devices import check_run
from d2lmgpu.machine.timing import Accumulator, Timer
from d2lmgpu.mxnet.devices import (
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
from d2lmgpu.mxnet.networks import Residual, lenet, resnet18
from d2lmgpu.mxnet.training import (
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
from d2lmgpu.records.run import Run

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

npx.set_np()


def __getattr__(name):
    """Hand on d2l's pure helpers; what trains, loads data or picks devices is ours or raises."""
    return hand_on(name, "d2l.mxnet", __all__)
