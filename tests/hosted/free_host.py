"""A hosted notebook service in small: what it has installed, one notebook, nothing of the course.

Its packages are this environment's own, linked one by one, so nothing is downloaded: PyTorch,
NumPy, Matplotlib, ipywidgets, Jupyter's kernel, and what those need.
"""

import json
import os
import subprocess
import venv
from pathlib import Path

import nbformat
import tomllib
from nbclient import NotebookClient
from packages import brought_by, link
from packaging.requirements import Requirement
from programs import program

ROOT = Path(__file__).resolve().parents[2]
URL = "https://github.com/ada/course"  # git leads from there to this checkout
HAS = ["torch", "numpy", "matplotlib", "ipywidgets", "ipykernel", "pip"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDS = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
LACKS = brought_by(Requirement(line).name for line in NEEDS) - brought_by(HAS)
KEPT = ("PATH", "LANG", "OPENBLAS_CORETYPE")


class Host:
    """An environment with those packages, and a home of its own; it is never activated."""

    def __init__(self, folder, packages=()):
        self.folder = folder
        self.python = folder / "env" / "bin" / "python"
        self.fill(packages)
        self.environ = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "HOME": str(folder),
            "D2LMGPU_PROFILE": "test",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def fill(self, packages):
        """Make the environment."""
        venv.create(self.folder / "env", with_pip=False)
        (site_packages,) = self.folder.glob("env/lib/python3*/site-packages")
        for name in sorted(brought_by([*HAS, *packages])):
            link(name, site_packages)

    def run(self, *command, cwd=None, **environ):
        """Run its Python; what it printed. AssertionError with all of it if it fails."""
        command = [self.python, *map(str, command)]
        options = {"cwd": cwd or self.folder, "env": self.environ | environ}
        done = subprocess.run(command, **options, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_notebook(self, notebook, folder, **environ):
        """Run a notebook there from top to bottom, as it is; returns it with its outputs."""
        kernel = folder / ".jupyter" / "kernels" / "host" / "kernel.json"
        kernel.parent.mkdir(parents=True, exist_ok=True)
        start = [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel.write_text(json.dumps({"argv": start, "display_name": "host", "language": "python"}))
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="host",
            kernel_manager_class=program("jupyter_kernels").AsyncKernelManager,
            resources={"metadata": {"path": folder}},
        )
        client.create_kernel_manager()
        client.km.kernel_spec_manager.kernel_dirs = [str(kernel.parents[1])]
        client.execute(env=self.environ | environ)
        return notebook


def read(name):
    """A chapter, as 'scratch/pytorch', as it is once the course has an address."""
    notebook = nbformat.read(ROOT / "chapters" / f"{name}.ipynb", as_version=4)
    program("first_cells").put(notebook, name, {"url": URL, "branch": "main"})
    return notebook
