"""A stand-in for the NVIDIA driver's libcuda.so.1, compiled by gcc: a driver without a GPU."""

import subprocess

# What libmxnet.so takes from the driver (nm -D); 100 is CUDA_ERROR_NO_DEVICE.
NO_DEVICE = [
    *("cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuGetErrorString", "cuLaunchKernel"),
    *("cuGraphKernelNodeGetParams", "cuGraphNodeGetType", "cuModuleGetFunction"),
    *("cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleUnload", "cuInit"),
]


def build(folder, version=12000, error=0):
    """Compile libcuda.so.1 into ``folder``: a driver for CUDA ``version`` (12000 is 12.0)."""
    source = f"int cuDriverGetVersion(int *v) {{ *v = {version}; return {error}; }}\n"
    source += "".join(f"int {name}(void) {{ return 100; }}\n" for name in NO_DEVICE)
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c", "-"]
    library = folder / "libcuda.so.1"
    subprocess.run([*command, "-o", str(library)], input=source, text=True, check=True)
    return library
