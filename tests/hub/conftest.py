"""The hub's modules are files of a configuration, not a package: put their folder on the path.

Also the real hubs that the REST tests talk to: one per module, on loopback, with a driver that
reports the GPUs of a text file.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hub"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "browser"))  # the steps of a reader

from running_hub import RunningHub
from servers import SECONDS


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with four GPUs whose learners share one Unix account."""
    folder = tmp_path_factory.mktemp("hub")
    with RunningHub(folder, without_lab=True, HUB_ACCOUNTS="one") as running:
        running.set_gpus("GPU-a", "GPU-b", "GPU-c", "GPU-d")
        yield running


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
