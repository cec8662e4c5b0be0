"""A headless Firefox. Playwright drives builds of its own only; puppeteer-core the system's."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

DRIVER = Path(__file__).parent / "npm" / "firefox.js"


class Firefox:
    """Calls of ``firefox.js``: ``open(address, width)``, ``evaluate(code)``, ``press(name)``,
    ``wait(condition)``, ``troubles()``, which are the page's errors and requests elsewhere."""

    def __init__(self, process):
        self.process = process

    def __getattr__(self, name):
        def call(*given):
            print(json.dumps([name, *given]), file=self.process.stdin, flush=True)
            answer = json.loads(self.process.stdout.readline())
            assert "error" not in answer, f"{name}: {answer['error']}"
            return answer["value"]

        return call


@contextlib.contextmanager
def firefox(folder):
    """The system's Firefox with a new profile and a home in ``folder``."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    (folder / "profile").mkdir()
    places = {"HOME": str(folder), "TMPDIR": str(folder), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        ["node", DRIVER, program, folder / "profile"],
        env=places,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Firefox(process)
        process.stdin.close()
