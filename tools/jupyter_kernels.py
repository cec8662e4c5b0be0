"""Jupyter kernels that take no port.

A kernel's five ports are chosen before it starts, and are free for the second that it takes to
start. If another process takes that of ``iopub`` meanwhile, such as a worker of another chapter's,
the kernel lives on and never answers. On Linux a socket may have a name in place of a port.
"""

import sys
from uuid import uuid4

import jupyter_client
from jupyter_client.connect import ConnectionFileMixin
from traitlets import default

# On Linux a socket needs no file for its name: man 7 unix, "abstract".
TRANSPORT = "ipc" if sys.platform == "linux" else "tcp"
# By which JupyterLab, Notebook and Voilà have such kernels; `make lab-app` says it, too.
SERVER_OPTION = "--MultiKernelManager.kernel_manager_class=server_kernels.ServerKernelManager"


class Named(ConnectionFileMixin):
    """What each of the managers below is, too."""

    @default("transport")
    def _transport(self):
        return TRANSPORT

    @default("ip")
    def _ip(self):
        return f"@d2lmgpu-kernel-{uuid4()}" if self.transport == "ipc" else self._ip_default()


class KernelManager(Named, jupyter_client.KernelManager):
    """jupyter_client's, for nbval and for tests."""


class AsyncKernelManager(Named, jupyter_client.AsyncKernelManager):
    """jupyter_client's, for nbclient."""
