"""The kernels of JupyterLab, Notebook and Voilà, without ports as well (``jupyter_kernels.py``)."""

from jupyter_kernels import Named
from jupyter_server.services.kernels import kernelmanager


class ServerKernelManager(Named, kernelmanager.ServerKernelManager):
    """jupyter_server's."""
