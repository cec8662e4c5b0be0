"""Devices of MXNet: which there are, how work runs on all of them, what they are given."""

import ctypes
import functools

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.base import _LIB, check_call
from numpy import dtype

from d2lmgpu.backend.arguments import Rules
from d2lmgpu.backend.functions import device_functions
from d2lmgpu.machine import devices as _devices
from d2lmgpu.machine import threads as _parallel
from d2lmgpu.machine.checks import is_list
from d2lmgpu.machine.devices import DeviceError
from d2lmgpu.process import lanes

# NumPy semantics are set for each thread
_threads = _parallel.DeviceThreads(npx.set_np, lambda: num_gpus())


class _MXNetRules(Rules):
    Array = np.ndarray
    Device = mx.Context
    NETWORK = "an initialised Block"

    def memory(self, array):
        # An array is given memory by whoever asks for it first: this thread, or the one that
        # computes the array. If both do at once, each gives its own, and the values are lost.
        check_call(_LIB.MXNDArrayWaitToWrite(array.handle))
        pointer = ctypes.c_void_p()
        check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
        start = pointer.value or 0  # an array without elements has none
        return start, start + dtype(array.dtype).itemsize * array.size

    def place(self, array):
        return array.ctx

    def values(self, array):
        return array.asnumpy() if array.ctx.device_type != "gpu" else None

    def recorded(self, array):
        return autograd.is_recording()

    def exists(self, device):
        return device.device_type != "gpu" or device.device_id < num_gpus()

    def has_parameters(self, net):
        params = list(net.collect_params().values()) if isinstance(net, gluon.Block) else []
        return params and all(p._data is not None or p._deferred_init for p in params)


checked = _MXNetRules().checked


def _each_device_once(initialize):
    """Gluon's ``Parameter.initialize``, which would train one copy for a device named twice."""

    @functools.wraps(initialize)
    def initialize_once(self, init=None, ctx=None, *args, **kwargs):
        if is_list(ctx) and len(set(map(str, ctx))) < len(ctx):
            raise DeviceError(
                f"Gluon keeps one copy of a parameter on each device, and {list(ctx)} names one "
                "twice. Give each once: set D2LMGPU_DEVICES=cpu, or train from scratch with "
                "get_params, which makes a copy for each entry."
            )
        return initialize(self, init, ctx, *args, **kwargs)

    return initialize_once


gluon.Parameter.initialize = _each_device_once(gluon.Parameter.initialize)


def num_gpus() -> int:
    """Number of GPUs that MXNet sees.

    Returns
    -------
    int
        0 without any.
    """
    return npx.num_gpus()


gpu, cpu, try_gpu, try_all_gpus, devices, sharing, profile = device_functions(
    checked, num_gpus, npx.gpu, npx.cpu
)


@checked
def parallel(fn, *per_device_args) -> list:
    """``[fn(*args) for each device]``, all devices at once.

    On GPUs a plain loop: kernels are asynchronous. On the CPU, and on both, threads, which record
    and train or not as is done here; several return when what they have queued is computed.

    Parameters
    ----------
    fn : callable
        What each device does; what it raises is raised here.
    *per_device_args : list
        The arguments of ``fn``, in their order: each is a list with one entry a device.

    Returns
    -------
    list
        What ``fn`` returned, one entry a device. A GPU may still be at work: see ``synchronize``.

    Raises
    ------
    ArgumentError
        If there is no list, or if the lists are not of one length.
    DeviceError
        For several devices from inside of what runs on a CPU device: it has one thread.
    """
    if _devices.available(num_gpus())[0] == "gpu":
        return [fn(*args) for args in zip(*per_device_args, strict=True)]
    mode = autograd.is_recording(), autograd.is_training()

    def call(*args):  # MXNet keeps these settings for each thread
        before = autograd.set_recording(mode[0]), autograd.set_training(mode[1])
        try:
            result = fn(*args)
            if len(per_device_args[0]) > 1:  # measured: else the devices overlap less
                npx.waitall()
            return result
        finally:
            autograd.set_recording(before[0])
            autograd.set_training(before[1])

    return lanes.parallel(_threads.run, call, *per_device_args, apart=False)  # all wait for all


def synchronize() -> None:
    """Wait until every device has done its work."""
    npx.waitall()
