"""What ``torch.cuda`` and ``torch.accelerator`` say and do."""

from types import SimpleNamespace

NAME, MEMORY = "cuda, on cores of the CPU", 16 << 30
NOTHING = [
    "empty_cache",
    "init",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_stream",
    "synchronize",
]
ZERO = [
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "utilization",
]


class Nothing:
    """An event, a stream, or a device to be on: all is done at once."""

    cuda_stream = 0

    def __init__(self, *_, **__):
        pass

    def elapsed_time(self, other):
        return 1.0

    def query(self):
        return True

    def is_capturing(self):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, function):  # as a decorator
        return function


def replace(torch, device, devices):
    """So many GPUs are there, and nothing takes time on them."""
    properties = SimpleNamespace(
        name=NAME, total_memory=MEMORY, major=8, minor=0, multi_processor_count=1
    )

    def count():
        device("cuda")
        return devices

    def available():
        return count() > 0

    def set_device(place):
        device("cuda")
        if isinstance(place, str):
            place = torch.device(place)
        index = getattr(place, "index", place)
        if index is not None and index >= 0:  # a number below 0 is none, as in PyTorch
            device.index = index

    said = {
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
        "get_device_properties": lambda *_: properties,
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
    said |= {name: lambda *_, **__: None for name in NOTHING}
    said |= {name: lambda *_, **__: 0 for name in ZERO}
    for owner in (torch.cuda, torch.accelerator):
        for name, function in said.items():
            if hasattr(owner, name):
                setattr(owner, name, function)
    for name in ("Event", "Stream", "ExternalStream", "stream", "StreamContext", "device", "graph"):
        setattr(torch.cuda, name, Nothing)
    torch.cuda.device_of = Nothing
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: 0)
    torch.cuda.nvtx.range = Nothing
