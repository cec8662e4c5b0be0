"""Types of numbers: autocast of GPUs, and what scales losses for it."""

from d2lmgpu.watch.cuda.device import replaced


def replace(torch, device, devices) -> None:
    """It is that of the CPU, in the same type; off where all is to be computed in float64."""

    def autocast(real):
        def made(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            if device.is_gpu(device_type):
                device_type, dtype = device("cuda"), dtype or torch.float16
            enabled = enabled and torch.get_default_dtype() != torch.float64
            real(self, device_type, dtype, enabled, cache_enabled)

        return made

    def scaler(real):
        def made(self, place="cuda", *args, **kwargs):
            real(self, device(place), *args, **kwargs)

        return made

    replaced(torch.amp.autocast_mode.autocast, "__init__", autocast)
    replaced(torch.amp.GradScaler, "__init__", scaler)
