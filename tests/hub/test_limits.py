"""Limits: the files that cgroup v2 reads, and the reason where it is not to be had.

The kernel's side is not tested here: that takes a machine whose hub runs as a service.
"""

import subprocess

import limits
import pytest
from limits import Groups, Unavailable


def fake_cgroup(root, controllers="cpu memory io"):
    """The files of a cgroup v2 tree with a delegated service in it."""
    service = root / "system.slice" / "hub.service"
    service.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory io")
    (service / "cgroup.controllers").write_text(controllers)
    (service / "cgroup.procs").write_text("4711\n")
    (service / "cgroup.subtree_control").touch()
    membership = root / "membership"
    membership.write_text("0::/system.slice/hub.service\n")
    return service, membership


def test_a_group_has_its_limits(tmp_path):
    service, membership = fake_cgroup(tmp_path)
    groups = Groups.open(tmp_path, membership)
    assert (service / "cgroup.subtree_control").read_text() == "+memory +cpu"
    assert (service / "hub" / "cgroup.procs").read_text() == "4711"
    group = groups.make("ada/../x", memory_bytes=2**30, cpus=1.5)
    assert group.parent == service, "a name never leaves the hub's group"
    assert (group / "memory.max").read_text() == "1073741824"
    assert (group / "cpu.max").read_text() == "150000 100000"
    unlimited = groups.make("grace", None, None)
    assert (unlimited / "memory.max").read_text() == "max"
    assert (unlimited / "cpu.max").read_text() == "max 100000"


def test_a_restart_finds_the_same_groups(tmp_path):
    service, membership = fake_cgroup(tmp_path)
    first = Groups.open(tmp_path, membership)
    membership.write_text("0::/system.slice/hub.service/hub\n")
    assert Groups.open(tmp_path, membership).folder == first.folder == service


def test_kill_reaches_the_owners_group_only(tmp_path):
    service, membership = fake_cgroup(tmp_path)
    groups = Groups.open(tmp_path, membership)
    owners = ["a+b", "a_b", "ada", "ada/second"]
    switches = {owner: groups.make(owner, None, None) / "cgroup.kill" for owner in owners}
    for switch in switches.values():
        switch.write_text("")
    groups.kill("a+b")
    groups.kill("nobody")
    killed = [owner for owner, switch in switches.items() if switch.read_text() == "1"]
    assert killed == ["a+b"]
    assert len(list(service.glob("learner-*"))) == len(owners)


def test_an_older_kernel_has_every_process_killed_one_by_one(tmp_path):
    """Linux before 5.14 has no ``cgroup.kill``."""
    _, membership = fake_cgroup(tmp_path)
    groups = Groups.open(tmp_path, membership)
    group = groups.make("ada", None, None)
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    gone = subprocess.Popen(["true"])
    gone.wait()
    pids = [process.pid for process in [*processes, gone]]
    (group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    groups.kill("ada")
    assert [process.wait(5) for process in processes] == [-9, -9]


def test_a_group_is_removed_once_its_last_process_has_left(tmp_path):
    """A folder with files in it, here as with the kernel a group with processes, stays."""
    _, membership = fake_cgroup(tmp_path)
    groups = Groups.open(tmp_path, membership)
    dying, busy = groups.make("ada", None, None), groups.make("grace", None, None)
    (dying / "cgroup.kill").touch()
    groups.kill("ada")
    groups.remove_empty()
    assert dying.exists()
    for file in dying.iterdir():
        file.unlink()
    groups.remove_empty()
    assert not dying.exists()
    assert busy.exists()
    assert groups.make("ada", None, None) == dying


def test_enter_writes_the_calling_process(tmp_path):
    import os

    limits.enter(tmp_path)
    assert (tmp_path / "cgroup.procs").read_text() == str(os.getpid())


def test_the_reason_is_said_where_there_is_no_limit(tmp_path):
    with pytest.raises(Unavailable, match="does not use cgroup v2"):
        Groups.open(tmp_path, tmp_path / "none")
    _, membership = fake_cgroup(tmp_path, controllers="cpu")
    with pytest.raises(Unavailable, match="is not given memory"):
        Groups.open(tmp_path, membership)
    membership.write_text("0::/\n")
    with pytest.raises(Unavailable, match="root cgroup"):
        Groups.open(tmp_path, membership)
