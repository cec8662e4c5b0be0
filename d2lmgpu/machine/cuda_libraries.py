"""Loads the CUDA 11 libraries that ``mxnet-cu112`` needs, before MXNet is imported.

MXNet looks for them where a CUDA toolkit would have put them. requirements-gpu.txt installs them
as wheels instead, so they are loaded here, each after those that it needs itself.
"""

import ctypes
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

# (the wheel, its folder below nvidia/, its library), in the order in which they must be loaded.
WHEELS = (
    ("nvidia-cuda-runtime-cu11==11.8.89", "cuda_runtime", "libcudart.so.11.0"),
    ("nvidia-cuda-nvrtc-cu11==11.8.89", "cuda_nvrtc", "libnvrtc.so.11.2"),
    ("nvidia-nvtx-cu11==11.8.86", "nvtx", "libnvToolsExt.so.1"),
    ("nvidia-cublas-cu11==11.11.3.6", "cublas", "libcublas.so.11"),
    ("nvidia-cufft-cu11==10.9.0.58", "cufft", "libcufft.so.10"),
    ("nvidia-curand-cu11==10.3.0.86", "curand", "libcurand.so.10"),
    ("nvidia-cusolver-cu11==11.4.1.48", "cusolver", "libcusolver.so.11"),
    ("nvidia-nccl-cu11==2.21.5", "nccl", "libnccl.so.2"),
    ("nvidia-cudnn-cu11==8.9.6.50", "cudnn", "libcudnn.so.8"),
)
CUDA = 11020  # mxnet-cu112 is built with CUDA 11.2, as the driver counts versions
DRIVER = "460.27.03"  # the first Linux driver for it (CUDA 11.2 release notes)


class CudaLibraryError(ImportError):
    """A library that ``mxnet-cu112`` needs is missing, or the driver is too old for it."""


def preload() -> None:
    """Load what ``import mxnet`` will need. Does nothing unless ``mxnet-cu112`` is installed.

    Raises ``CudaLibraryError``: which library or driver is missing, and what to install.
    """
    try:
        distribution("mxnet-cu112")
    except PackageNotFoundError:
        return
    check_driver()
    missing = [wheel for wheel, folder, library in WHEELS if not load(folder, library)]
    if missing:
        raise CudaLibraryError(
            "mxnet-cu112 needs CUDA 11 libraries that are neither in this environment nor on the"
            f" system: pip install {' '.join(missing)}"
        )


def check_driver() -> None:
    """Raise ``CudaLibraryError`` unless the NVIDIA driver is there and new enough."""
    instead = "Without a GPU: pip uninstall mxnet-cu112 && pip install mxnet==1.9.1"
    try:
        driver = ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    except OSError:
        raise CudaLibraryError(
            "mxnet-cu112 is installed, but this machine has no NVIDIA driver (libcuda.so.1):"
            f" install driver {DRIVER} or newer. {instead}"
        ) from None
    version = ctypes.c_int(0)
    error = driver.cuDriverGetVersion(ctypes.byref(version))
    if error:
        raise CudaLibraryError(f"The NVIDIA driver does not answer: CUDA error {error}. {instead}")
    if version.value < CUDA:
        has = f"{version.value // 1000}.{version.value % 1000 // 10}"
        raise CudaLibraryError(
            f"The NVIDIA driver is for CUDA {has}; mxnet-cu112 needs CUDA 11.2 or newer:"
            f" install driver {DRIVER} or newer. {instead}"
        )


def load(folder: str, library: str) -> bool:
    """Load the library for all to see: the wheel's own, else the system's; False without both."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else ()
    own = [path for place in places if (path := Path(place, folder, "lib", library)).exists()]
    try:
        ctypes.CDLL(str(own[0] if own else library), ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True
