"""A Jupyter server that ends, also while a request is not answered yet.

Such a request leaves a thread of AnyIO that waits for its next work, and Python waits for the
thread: the server hangs (https://github.com/jupyterlab/jupyterlab/issues/10442).
"""

import threading

NAME = "AnyIO worker thread"


def stop_at_the_end() -> None:
    """From now on the end of the main thread is theirs, too."""
    threading.Thread(target=_stop, daemon=True, name="stop idle threads").start()


def _stop():
    threading.main_thread().join()
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.stop()
