"""JupyterLab and Voilà with a notebook that has a lab: started and ended by a test."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import psutil
from lab_notebook import CELLS
from processes import commands, kill, left, marked
from programs import program

from d2lmgpu.process.addresses import held_ports

ROOT = Path(__file__).resolve().parents[2]
TOOLS = str(ROOT / "tools")
TRANSPORT = program("jupyter_kernels").TRANSPORT
SECONDS = 60  # a hang is a failure: nothing here takes as long
# JupyterLab without its news, and with every cell in the page, however far down.
LAB_SETTINGS = {
    "page_config.json": {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    },
    "default_setting_overrides.json": {
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}
    },
}
PLACES = (
    "HOME",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTER_DATA_DIR",
    "IPYTHONDIR",
    "TMPDIR",
)


class Server:
    """``with Server(folder, options) as server``: ``server.url`` answers, for ``lab.ipynb``.

    Everything that it writes stays in ``folder``; it and its kernels have ended at the end of the
    block, and whatever those started must end by itself.
    """

    def __init__(self, folder: Path, *command, **settings):
        self.folder, self.command, self.settings = folder, command, settings
        self.token, self.port = secrets.token_hex(16), held_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = []

    def __enter__(self):
        self.notebooks, config = self.folder / "notebooks", self.folder / "config" / "labconfig"
        for folder in (self.notebooks, config):
            folder.mkdir(parents=True)
        cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
        nbformat.write(notebook, self.notebooks / "lab.ipynb")
        for name, content in LAB_SETTINGS.items():
            (config / name).write_text(json.dumps(content))
        places = {name: self.folder / name.lower() for name in PLACES}
        for place in places.values():
            place.mkdir()
        self.temporary, self.connections = places["TMPDIR"], places["JUPYTER_RUNTIME_DIR"]
        self.settings["PYTHONFAULTHANDLER"] = "1"
        self.settings["D2LMGPU_TEST"] = self.token  # by which `marked` finds what it has started
        places["JUPYTER_CONFIG_PATH"] = config.parent
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(part.format(self) for part in self.command)],
            cwd=self.notebooks,
            env=os.environ | {k: str(v) for k, v in places.items()} | self.settings,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        deadline = time.monotonic() + SECONDS
        while not self._answers():
            assert time.monotonic() < deadline and self.process.poll() is None, "".join(self.log)
            time.sleep(0.05)
        return self

    def _answers(self):
        try:
            return urllib.request.urlopen(f"{self.url}/?token={self.token}", timeout=SECONDS)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def __exit__(self, *exc):
        kernels = [json.loads(path.read_text()) for path in self.connections.glob("kernel-*.json")]
        processes = [*self.descendants(), psutil.Process(self.process.pid)]
        self.process.terminate()
        alive = left(processes, SECONDS)
        names = list(commands(alive).values())
        if self.process.poll() is None:  # then its log says where each of its threads stands
            self.process.send_signal(signal.SIGABRT)
        self.process.wait()
        kill(alive)
        self.reader.join(SECONDS)
        assert all(kernel["transport"] == TRANSPORT for kernel in kernels), "it has ports"
        assert alive == [], f"{names}\n{''.join(self.log)}"
        # What was only being started when the list was made ends by itself, and its files with it.
        assert left(marked("D2LMGPU_TEST", self.token), SECONDS) == []
        assert list(self.temporary.glob("d2lmgpu-*")) == []

    def descendants(self):
        return psutil.Process(self.process.pid).children(recursive=True)

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)


KERNELS = program("jupyter_kernels").SERVER_OPTION
OPTIONS = [
    KERNELS,
    "--port={0.port}",
    "--port-retries=0",
    "--ip=127.0.0.1",
    "--no-browser",
    "--allow-root",
    "--IdentityProvider.token={0.token}",
]


def jupyterlab(folder):
    """As ``make lab`` and the hub start it, which both have that extension."""
    return Server(
        folder,
        "jupyterlab",
        *OPTIONS,
        "--LabApp.expose_app_in_browser=True",
        "--ServerApp.jpserver_extensions=notebook_metadata=True",
        PYTHONPATH=os.pathsep.join([str(ROOT / "hub" / "learner"), TOOLS]),
    )


def notebook7(folder):
    exposed = "--JupyterNotebookApp.expose_app_in_browser=True"
    return Server(folder, "notebook", *OPTIONS, exposed, PYTHONPATH=TOOLS)


def voila(folder):
    """The notebook as an app, the way that ``make lab-app`` serves it."""
    return Server(
        folder,
        "voila",
        "lab.ipynb",
        "--template=course",
        "--port={0.port}",
        "--Voila.port_retries=0",
        "--Voila.ip=127.0.0.1",
        "--no-browser",
        KERNELS,
        JUPYTER_PATH=str(ROOT / "tools" / "lab-app"),
        PYTHONPATH=TOOLS,
    )
