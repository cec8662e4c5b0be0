#!/usr/bin/env python3
"""A learner's server: JupyterHub's own, with what the hub promises of it.

What is the same for every server stands here, so that one on a node or in a container has it too.
"""

import json
import os
import sys
import tempfile
from contextlib import ExitStack

FOLDER = os.path.dirname(os.path.abspath(__file__))
OURS = [
    # A kernel's sockets are files in a closed folder. On ports, which are the other choice, any
    # account of the machine could listen to all that the kernel prints.
    "--ConnectionFileMixin.transport=ipc",
    # Deleting makes room in a home that is full: the trash would be in the same home.
    "--FileContentsManager.delete_to_trash=False",
    # A server without these must not start: they are what holds it to the course.
    "--ServerApp.reraise_server_extension_failures=True",
    "--ServerApp.jpserver_extensions=links=True",
    "--ServerApp.jpserver_extensions=activity=True",
    "--ServerApp.jpserver_extensions=notebook_metadata=True",
    # `links` has nbgitpuller's pages; Voilà's run a notebook for whoever follows a link to it.
    "--ServerApp.jpserver_extensions=nbgitpuller=False",
    "--ServerApp.jpserver_extensions=voila.server_extension=False",
]


def settings() -> dict:
    """That the token in the server's own cookie is sent as the hub says of its cookies."""
    options = json.loads(os.environ.get("JUPYTERHUB_COOKIE_OPTIONS", "{}"))
    path = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/")
    return {"xsrf_cookie_kwargs": {"path": path, **options}}


def short_folder() -> str:
    """A folder for sockets: not in the home, where the path may be too long for one."""
    usable = (path for path in ("/tmp", "/var/tmp") if os.access(path, os.W_OK | os.X_OK))
    return next(usable, tempfile.gettempdir())


def main() -> None:
    sys.path.insert(0, FOLDER)  # where a server finds `links` and the others
    import idle_threads
    from jupyterhub.singleuser import main as serve

    idle_threads.stop_at_the_end()
    with ExitStack() as stack:
        if "JUPYTER_RUNTIME_DIR" not in os.environ:  # else whoever starts it made one
            folder = tempfile.TemporaryDirectory(prefix="d2lmgpu-server-", dir=short_folder())
            os.environ["JUPYTER_RUNTIME_DIR"] = stack.enter_context(folder)
        sys.argv[1:1] = [*OURS, f"--ServerApp.tornado_settings={settings()}"]
        serve()


if __name__ == "__main__":
    main()
