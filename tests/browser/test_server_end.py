"""A server of ours ends, also while a request is not answered yet."""

import os
import subprocess
import sys

from servers import SECONDS, TOOLS

# What a server does: its loop is stopped, whatever its requests still wait for.
SERVER = """
import asyncio
import server_kernels
from anyio.to_thread import run_sync

async def request():
    await run_sync(int)
    loop.stop()
    await asyncio.sleep(3600)

loop = asyncio.new_event_loop()
task = loop.create_task(request())
loop.run_forever()
"""


def test_a_server_ends_though_a_request_is_not_answered():
    environ = os.environ | {"PYTHONPATH": TOOLS}
    subprocess.run([sys.executable, "-c", SERVER], env=environ, timeout=SECONDS, check=True)
