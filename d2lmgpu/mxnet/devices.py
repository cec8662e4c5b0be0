"""Devices of MXNet: which there are, how work runs on all of them, what they are given."""

import ctypes

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.base import _LIB, check_call
from numpy import dtype

from d2lmgpu.backend.arguments import Rules, need
from d2lmgpu.backend.functions import device_functions
from d2lmgpu.machine import devices as _devices
from d2lmgpu.machine import threads as _parallel
from d2lmgpu.process import lanes

_threads = _parallel.DeviceThreads(setup=npx.set_np)  # NumPy semantics are set for each thread


class _MXNetRules(Rules):
    Array, Device = np.ndarray, mx.Context

    def memory(self, array):
        pointer = ctypes.c_void_p()
        check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
        start = pointer.value or 0  # an array without elements has none
        return start, start + dtype(array.dtype).itemsize * array.size

    def place(self, array):
        return array.ctx

    def at_hand(self, array):
        return array.asnumpy() if array.ctx.device_type != "gpu" else None

    def recorded(self, array):
        return autograd.is_recording()

    def exists(self, device):
        return device.device_type != "gpu" or device.device_id < num_gpus()

    def evaluate_accuracy_gpus(self, net, data_iter):
        params = list(net.collect_params().values()) if isinstance(net, gluon.Block) else []
        right = params and all(p._data is not None or p._deferred_init for p in params)
        need(right, "net", net, "an initialised Block, or use evaluate_accuracy_gpu")


checked = _MXNetRules().checked


def num_gpus():
    """Number of GPUs that MXNet sees."""
    return npx.num_gpus()


gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile = device_functions(
    checked, num_gpus, npx.gpu, npx.cpu
)


@checked
def parallel(fn, *per_device_args):
    """``[fn(*args) for each device]``, all devices at once.

    Each of ``per_device_args`` is a list with one entry a device. On GPUs a plain loop: kernels
    are asynchronous. On the CPU a thread for each core, which records and trains or not as is done
    here; several return when what they have queued is computed.
    """
    if _devices.available(num_gpus())[0] == "gpu":
        return [fn(*args) for args in zip(*per_device_args, strict=True)]
    here = autograd.is_recording(), autograd.is_training()

    def call(*args):  # MXNet keeps these settings for each thread
        before = autograd.set_recording(here[0]), autograd.set_training(here[1])
        try:
            result = fn(*args)
            if len(per_device_args[0]) > 1:  # measured: else the devices overlap less
                npx.waitall()
            return result
        finally:
            autograd.set_recording(before[0])
            autograd.set_training(before[1])

    return lanes.parallel(_threads.run, call, *per_device_args, apart=False)  # all wait for all


def synchronize():
    """Wait until every device has done its work."""
    npx.waitall()
