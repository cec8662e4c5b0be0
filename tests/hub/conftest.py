"""The hub's modules are files of a configuration, not a package: put their folder on the path.

Also the real hubs that the REST tests talk to: one per module, on loopback, with a driver that
reports the GPUs of a text file.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hub"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "browser"))  # the steps of a reader

import safety
from launching import course, pages  # noqa: F401 (fixtures)
from open_folder import open_folder
from running_hub import RunningHub
from servers import SECONDS
from settings import Settings


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with four GPUs whose learners share one Unix account."""
    folder = tmp_path_factory.mktemp("hub")
    with RunningHub(folder, without_lab=True, HUB_ACCOUNTS="one") as running:
        running.set_gpus("GPU-a", "GPU-b", "GPU-c", "GPU-d")
        yield running


@pytest.fixture(scope="session")
def python():
    """A Python that every account can run and that has the course's packages."""
    try:
        safety.check_own_accounts(Settings(group="root"))
        yield sys.executable
        return
    except safety.SettingError:
        pass
    system = f"/usr/bin/python3.{sys.version_info.minor}"
    if not Path(system).exists():
        pytest.skip(f"{sys.executable} is closed to other accounts and there is no {system}")
    with open_folder("python") as folder:
        subprocess.run([system, "-m", "venv", "--without-pip", folder], check=True)
        paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
        (Path(paths["purelib"]) / "course.pth").write_text(sysconfig.get_path("purelib"))
        for name in ("etc", "share"):  # Jupyter's extensions and kernels
            (folder / name).symlink_to(Path(sys.prefix) / name)
        server = "bin/jupyterhub-singleuser"
        (folder / server).symlink_to(Path(sys.prefix) / server)
        yield str(folder / "bin/python")


@pytest.fixture
def context(browser):
    """A window of its own in the browser."""
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


@pytest.fixture
def empty_hub(hub):
    """The same hub with no server running, before and after."""
    yield hub
    hub.stop_all()
    assert hub.leases() == {}
