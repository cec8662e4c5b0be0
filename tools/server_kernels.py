"""Ours in the servers of JupyterLab, Notebook and Voilà: kernels that take no port, and an end.

Of the kernels see ``jupyter_kernels.py``. A server hangs at its end if a request is not answered
yet: it leaves a thread of AnyIO that waits for its next work, and Python waits for the thread
(https://github.com/jupyterlab/jupyterlab/issues/10442).
"""

import threading

from jupyter_kernels import Named
from jupyter_server.services.kernels import kernelmanager

IDLE = "AnyIO worker thread"


class ServerKernelManager(Named, kernelmanager.ServerKernelManager):
    """jupyter_server's."""


def stop_idle_threads() -> None:
    """Stop what waits for work that nobody gives any more, once the main thread has ended."""
    threading.main_thread().join()
    for thread in threading.enumerate():
        if thread.name == IDLE:
            thread.stop()


threading.Thread(target=stop_idle_threads, daemon=True, name="stop idle threads").start()
