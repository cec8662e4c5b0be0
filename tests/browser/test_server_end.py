"""A server of ours ends, also while a request is not answered yet."""

import os
import subprocess
import sys

from servers import ROOT, SECONDS, TOOLS

# What a server does at its end: its loop is stopped, whatever its requests still wait for.
STOP = """
import asyncio
from anyio.to_thread import run_sync

async def request():
    await run_sync(int)
    loop.stop()
    await asyncio.sleep(3600)

def main():
    loop.create_task(request())
    loop.run_forever()

loop = asyncio.new_event_loop()
"""


def ends(path, *command):
    environ = os.environ | {"PYTHONPATH": path}
    subprocess.run([sys.executable, *command], env=environ, timeout=SECONDS, check=True)


def test_jupyterlab_ends_though_a_request_is_not_answered():
    ends(TOOLS, "-c", f"import server_kernels\n{STOP}main()")


def test_a_learners_server_ends_though_a_request_is_not_answered(tmp_path):
    package = tmp_path / "jupyterhub"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "singleuser.py").write_text(STOP)
    ends(str(tmp_path), str(ROOT / "hub" / "learner" / "server.py"))
