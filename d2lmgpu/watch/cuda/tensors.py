"""Where tensors and networks are made, moved to and read from."""

from types import BuiltinFunctionType

from d2lmgpu.watch.cuda.device import replaced

NEW = ["new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "new_empty_strided"]


def replace(torch, device, devices) -> None:
    """A GPU among the arguments is the CPU."""
    factories(torch, device)
    moves(torch, device)
    checkpoints(torch, device)
    defaults(torch, device)


def factories(torch, device) -> None:
    """``torch.zeros(..., device="cuda")`` and all others that take a device."""
    from torch.jit import _builtins
    from torch.utils import _device

    def made(real):
        return lambda *args, **kwargs: real(*args, **moved(kwargs))

    def moved(kwargs):
        if "device" in kwargs:
            kwargs["device"] = device(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return kwargs

    known = set(_device._device_constructors())
    known |= {getattr(torch, name) for name in dir(torch) if name.endswith("_like")}
    for module in (torch, torch.fft):
        for name, function in list(vars(module).items()):
            if isinstance(function, BuiltinFunctionType) and function in known:
                builtin = _builtins._find_builtin(function)
                replaced(module, name, made)
                if builtin:  # TorchScript looks functions up by what they are
                    _builtins._register_builtin(getattr(module, name), builtin)
    for name in NEW:
        replaced(torch.Tensor, name, made)
    real = torch.Generator

    class Generator(real):
        def __new__(cls, place="cpu", **kwargs):
            return real.__new__(cls, device(kwargs.get("device", place)))

    Generator.__module__, Generator.__qualname__ = real.__module__, real.__qualname__
    torch.Generator = Generator


def moves(torch, device) -> None:
    """``to``, ``cuda`` and ``type`` of tensors, storages and networks."""

    def to(real):
        def moved(self, *args, **kwargs):
            if args and (device.is_gpu(args[0]) or args[0] is None):
                args = device(args[0]), *args[1:]
            if "device" in kwargs:
                kwargs["device"] = device(kwargs["device"])
            return real(self, *args, **kwargs)

        return moved

    def in_place(real):
        def stays(self, *args, **kwargs):
            device("cuda")
            return self

        return stays

    def as_type(real):
        def converted(self, dtype=None, *args, **kwargs):
            if isinstance(dtype, str):
                dtype = dtype.replace("torch.cuda.", "torch.")
            return real(self, dtype, *args, **kwargs)

        return converted

    for owner in (torch.Tensor, torch.nn.Module):
        replaced(owner, "to", to)
        replaced(owner, "cuda", in_place)
    replaced(torch.nn.Module, "to_empty", to)
    for owner in (torch.UntypedStorage, torch.TypedStorage):
        replaced(owner, "cuda", in_place)
    replaced(torch.Tensor, "type", as_type)
    replaced(torch.Tensor, "pin_memory", in_place)
    replaced(torch.Tensor, "record_stream", lambda real: lambda self, stream: None)

    def unpinned(real):
        def made(self, *args, **kwargs):
            real(self, *args, **kwargs)
            self.pin_memory = False

        return made

    replaced(torch.utils.data.DataLoader, "__init__", unpinned)


def checkpoints(torch, device) -> None:
    """What was saved from a GPU is read to the CPU."""

    def load(real):
        def loaded(file, map_location=None, *args, **kwargs):
            place = map_location
            if isinstance(place, dict):
                place = {saved: device(target) for saved, target in place.items()}
            elif not callable(place):
                place = "cpu"
            return real(file, place, *args, **kwargs)

        return loaded

    replaced(torch, "load", load)


def defaults(torch, device) -> None:
    """``torch.set_default_device``, ``with torch.device("cuda")`` and the type of old scripts."""
    from torch.utils import _device

    def context(real):
        return lambda self, place: real(self, device(place))

    def tensor_type(real):
        def set_type(kind):
            is_name = isinstance(kind, str)
            return real(kind.replace("torch.cuda.", "torch.") if is_name else kind)

        return set_type

    replaced(_device.DeviceContext, "__init__", context)
    replaced(torch, "set_default_tensor_type", tensor_type)
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Byte", "Bool"):
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
