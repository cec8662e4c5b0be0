"""Four hosts in one box, two more with a Slurm, and what runs left on them."""

import subprocess
from pathlib import Path

import pytest
from box_traces import Cluster, SlurmCluster, standing

from d2lmgpu.process.cluster import state


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.needs("slurm" if "slurm" in item.path.name else "hosts"))


@pytest.fixture(scope="session")
def cluster_folder(tmp_path_factory):
    """The folder of a cluster of four hosts that all tests share."""
    folder = tmp_path_factory.mktemp("hosts") / "cluster"
    with standing(folder, "--hosts", 4):
        yield folder


@pytest.fixture
def two_hosts(tmp_path, monkeypatch):
    """A cluster of its own for a test that does not leave it whole."""
    folder = tmp_path / "cluster"
    with standing(folder, "--hosts", 2):
        monkeypatch.setenv(state.VARIABLE, str(folder))
        yield Cluster(folder)


@pytest.fixture
def three_hosts(tmp_path, monkeypatch):
    """Three hosts with slow links, and a small disk for checkpoints that they see."""
    folder, disk = tmp_path / "cluster", tmp_path / "checkpoints"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], check=True)
    try:
        with standing(folder, "--hosts", 3, "--rate", "100mbit"):
            monkeypatch.setenv(state.VARIABLE, str(folder))
            yield Cluster(folder)
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.fixture
def cluster(cluster_folder, monkeypatch):
    """The shared cluster, on which ``launch`` runs by the hosts' names."""
    monkeypatch.setenv(state.VARIABLE, str(cluster_folder))
    return Cluster(cluster_folder)


@pytest.fixture(scope="session")
def slurm_folder(tmp_path_factory):
    """The folder of two hosts with a Slurm that all tests share."""
    folder = tmp_path_factory.mktemp("slurm") / "cluster"
    with standing(folder, "--slurm"):
        yield folder


@pytest.fixture
def slurm(slurm_folder, monkeypatch):
    """The shared Slurm, whose jobs are all over when a test begins."""
    monkeypatch.setenv(state.VARIABLE, str(slurm_folder))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return SlurmCluster(slurm_folder)
