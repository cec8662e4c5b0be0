"""The package's wheel, and a free host on which it was installed."""

import subprocess
import sys

import pytest
from free_host import LACKS, ROOT, Host


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The package as pip builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "-w", folder, ROOT]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def alone(wheel, tmp_path_factory):
    """A host on which the wheel was installed: pip found there all that it asks for."""
    host = Host(tmp_path_factory.mktemp("alone"), LACKS)
    host.run("-m", "pip", "install", "-q", "--no-index", f"{wheel}[torch,lab]")
    return host
