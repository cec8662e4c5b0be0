"""Four hosts in one box, and what runs left on them."""

from pathlib import Path

import pytest
from box_traces import Cluster, cluster_command, traces_of

from d2lmgpu.cluster import box, state


def pytest_collection_modifyitems(items):
    """Without the rights of root the tests here are skipped by name, and say what is missing."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    if here and (lacking := box.missing()):
        for item in here:
            item.add_marker(pytest.mark.skip(reason=f"needs {'; '.join(lacking)}"))


@pytest.fixture(scope="session")
def cluster_folder(tmp_path_factory):
    """The folder of a cluster of four hosts that all tests share."""
    folder = tmp_path_factory.mktemp("hosts") / "cluster"
    done = cluster_command("up", "--hosts", 4, folder=folder, check=False)
    assert done.returncode == 0, done.stderr
    yield folder
    cluster_command("down", folder=folder, check=True)
    assert traces_of(folder) == []


@pytest.fixture
def two_hosts(tmp_path, monkeypatch):
    """A cluster of its own for a test that does not leave it whole."""
    folder = tmp_path / "cluster"
    cluster_command("up", "--hosts", 2, folder=folder, check=True)
    monkeypatch.setenv(state.VARIABLE, str(folder))
    yield Cluster(folder)
    cluster_command("down", folder=folder, check=True)
    assert traces_of(folder) == []


@pytest.fixture
def cluster(cluster_folder, monkeypatch):
    """The shared cluster, on which ``launch`` runs by the hosts' names."""
    monkeypatch.setenv(state.VARIABLE, str(cluster_folder))
    return Cluster(cluster_folder)
