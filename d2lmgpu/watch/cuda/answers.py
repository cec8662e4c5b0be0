"""What ``torch.cuda`` and ``torch.accelerator`` say and do."""

import os
import sys
from types import SimpleNamespace

from d2lmgpu.machine.no_gpu import NOTHING, ZERO, Nothing
from d2lmgpu.watch.cuda.device import replaced

NAME, MEMORY = "cuda, on cores of the CPU", 16 << 30
ONLY_DONE = [
    "ipc_collect",
    "reset_max_memory_allocated",
    "set_per_process_memory_fraction",
    "set_rng_state",
]
UNUSED = ["max_memory_cached", "memory_cached", "utilization"]


COMPILER = [os.path.join("torch", part) + os.sep for part in ("_dynamo", "_inductor")]


def _for_the_compiler():
    """Whether torch.compile asks by itself: the tensors that it compiles for are the CPU's."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return any(part in frame.f_code.co_filename for part in COMPILER)


def _fresh(function):
    """The same under a name of its own: torch.compile takes no function that has two names."""
    return lambda *args, **kwargs: function(*args, **kwargs)


def replace(torch, device, devices) -> None:
    """So many GPUs are there, and nothing takes time on them."""
    properties = SimpleNamespace(
        name=NAME, total_memory=MEMORY, major=8, minor=0, multi_processor_count=1
    )

    def count():
        device.asked(device.watch.lines.caller())  # PyTorch itself asks in between
        return devices

    def available():
        return not _for_the_compiler() and count() > 0

    def get_device_properties(*_):
        if _for_the_compiler():
            raise AssertionError("Torch not compiled with CUDA enabled")  # what it expects then
        return properties

    def of_the_cpu(real):  # a build for CPUs has no profiler of kernels, and its substitute is slow
        def made(self, *args, **kwargs):
            if kwargs.get("use_device") == "cuda" or kwargs.get("use_cuda"):
                kwargs |= {"use_device": None, "use_cuda": False, "use_cpu": True}
            real(self, *args, **kwargs)

        return made

    def set_device(place):
        device("cuda")
        if isinstance(place, str):
            place = torch.device(place)
        index = getattr(place, "index", place)
        if index is not None and index >= 0:  # a number below 0 is none, as in PyTorch
            device.index = index

    answers = {
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_blas_handle": lambda: 0,
        "current_device": lambda: device.index,
        "current_device_idx": lambda: device.index,
        "current_device_index": lambda: device.index,
        "current_stream": lambda *_: Nothing(),
        "default_stream": lambda *_: Nothing(),
        "device_count": count,
        "get_arch_list": lambda: ["sm_80"],
        "get_device_capability": lambda *_: (8, 0),
        "get_device_name": lambda *_: NAME,
        "get_device_properties": get_device_properties,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "is_available": available,
        "is_bf16_supported": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
        "is_initialized": lambda: True,
        "mem_get_info": lambda *_: (MEMORY, MEMORY),
        "memory_stats": lambda *_: {},
        "memory_summary": lambda *_, **__: "",
        "set_device": set_device,
        "set_device_idx": set_device,
        "set_device_index": set_device,
    }
    answers |= {name: lambda *_, **__: None for name in NOTHING + ONLY_DONE}
    answers |= {name: lambda *_, **__: 0 for name in ZERO + UNUSED}
    for owner in (torch.cuda, torch.accelerator):
        for name, function in answers.items():
            if hasattr(owner, name):
                setattr(owner, name, _fresh(function))
    for name in ("Event", "Stream", "ExternalStream", "stream", "StreamContext", "device", "graph"):
        setattr(torch.cuda, name, Nothing)
    torch.cuda.device_of = Nothing
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: 0)
    torch.cuda.nvtx.range = Nothing
    replaced(torch.autograd.profiler.profile, "__init__", of_the_cpu)
