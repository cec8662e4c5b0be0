"""Ours in the servers of JupyterLab, Notebook and Voilà: kernels that take no port, and an end.

Of the kernels see ``jupyter_kernels.py``, of the end ``hub/learner/idle_threads.py``.
"""

import sys
from pathlib import Path

from jupyter_kernels import Named
from jupyter_server.services.kernels import kernelmanager

sys.path.append(str(Path(__file__).resolve().parents[1] / "hub" / "learner"))
import idle_threads

idle_threads.stop_at_the_end()


class ServerKernelManager(Named, kernelmanager.ServerKernelManager):
    """jupyter_server's."""
