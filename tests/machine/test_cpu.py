"""How many cores a process may use: its affinity and the CPU quotas of its control groups."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from d2lmgpu.machine import hardware

CORES = 64
CPU1 = "33 32 0:30 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct"
CPUSET1 = "34 32 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset"
CPU2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
DISK = "23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A made-up root: ``machine(mounts, own groups, {file: content})`` -> the cores to be had."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(CORES)), raising=False)
    quota = hardware.quota.__wrapped__  # afresh for every tree
    monkeypatch.setattr(hardware, "quota", lambda: quota(tmp_path))

    def cores(mounts, groups, files):
        proc = {"proc/self/mountinfo": "\n".join([DISK, *mounts]), "proc/self/cgroup": groups}
        for name, text in (proc | files).items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.fsencode(text + "\n"))
        return hardware.num_cores()

    return cores


def v1(group, quota, period=100_000):
    folder = f"sys/fs/cgroup/cpu,cpuacct/{group}"
    return {f"{folder}/cpu.cfs_quota_us": str(quota), f"{folder}/cpu.cfs_period_us": str(period)}


OWN1 = "5:cpuset:/elsewhere\n4:cpuacct,cpu:/user/me\n1:name=systemd:/x\n0::/"


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        (-1, CORES),
        (100_000, 1),
        (200_000, 2),
        (10**9, CORES),
        (199_999, 1),  # two devices would wait for each other's quota: less than two cores
        (50_000, 1),  # a machine has one core at least
    ],
)
def test_version_1(machine, quota, cores):
    assert machine([CPUSET1, CPU1.format(root="/")], OWN1, v1("user/me", quota)) == cores


def test_the_period_counts(machine):
    assert machine([CPU1.format(root="/")], OWN1, v1("user/me", 150_000, 50_000)) == 3


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", CORES),
        ("100000 100000", 1),
        ("300000 100000", 3),
        ("75000 50000", 1),
    ],
)
def test_version_2(machine, limit, cores):
    files = {"sys/fs/cgroup/hub/user-1/cpu.max": limit}
    assert machine([CPU2.format(root="/")], "0::/hub/user-1", files) == cores


def test_a_quota_of_a_group_above_counts_and_the_least_wins(machine):
    mounts, groups = [CPU1.format(root="/")], OWN1
    above = v1("user", 300_000)
    assert machine(mounts, groups, v1("user/me", -1) | above) == 3
    assert machine(mounts, groups, v1("user/me", 500_000) | above) == 3
    assert machine(mounts, groups, v1("user/me", 200_000) | above) == 2
    assert machine(mounts, groups, v1("user/me", 200_000) | v1("", 100_000)) == 1


def test_a_quota_of_another_group_does_not_count(machine):
    files = {
        "sys/fs/cgroup/hub/user-1/cpu.max": "max 100000",
        "sys/fs/cgroup/hub/user-2/cpu.max": "100000 100000",
        "sys/fs/cgroup/hub/user-1/child/cpu.max": "100000 100000",
    }
    assert machine([CPU2.format(root="/")], "0::/hub/user-1", files) == CORES


@pytest.mark.parametrize(
    ("root", "group"),
    [
        ("/docker/abc", "/docker/abc"),  # the container's group is mounted, and named from outside
        ("/", "/"),  # its own namespace
        ("/docker/abc", "/"),  # mounted from outside, named from inside
        ("/", "/docker/abc"),  # mounted from inside, named from outside
        ("/../..", "/"),
    ],
)
def test_seen_from_inside_a_container(machine, root, group):
    groups = f"4:cpu,cpuacct:{group}\n0::{group}"
    assert machine([CPU1.format(root=root)], groups, v1("", 200_000)) == 2
    files = {"sys/fs/cgroup/cpu.max": "300000 100000"}
    assert machine([CPU2.format(root=root)], groups, files) == 3


ODD = ["f\udcfcr", "a\x1cb", "a\x85b", "a\u2028b", "a\x0b - b"]  # the first is not UTF-8


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_folder_of_any_name_may_be_mounted_beside_them(machine, name):
    odd = f"40 23 8:2 / /mnt/{name.replace(' ', chr(92) + '040')} rw - ext4 /dev/sda2 rw"
    files = {"sys/fs/cgroup/cpu.max": "300000 100000"}
    assert machine([odd, CPU2.format(root="/")], "0::/", files) == 3


def test_a_group_below_the_mounted_one(machine):
    files = v1("", -1) | v1("job", 100_000)
    assert machine([CPU1.format(root="/docker/abc")], "4:cpu:/docker/abc/job", files) == 1


def test_the_affinity_is_the_most(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert machine([CPU2.format(root="/")], "0::/", {"sys/fs/cgroup/cpu.max": "900000 100000"}) == 3


def test_without_control_groups_the_affinity_counts(tmp_path, monkeypatch):
    assert hardware.quota(tmp_path) == math.inf
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    monkeypatch.setattr(hardware, "quota", lambda: math.inf)
    assert hardware.num_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # not on Linux
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert hardware.num_cores() == 1


MOUNTS = {"version 1": "/sys/fs/cgroup/cpu", "version 2": "/sys/fs/cgroup"}


@pytest.mark.parametrize("version", MOUNTS)
def test_a_real_quota_of_one_core_leaves_no_two_devices_in_parallel(version):
    group = Path(MOUNTS[version], f"d2lmgpu-test-{os.getpid()}")
    name = "cpu.cfs_quota_us" if version == "version 1" else "cpu.max"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"control groups {version}: {error}")
    try:
        if not (group / name).exists():
            pytest.skip(f"control groups {version}: no {name} here")
        (group / name).write_text("100000")
        code = (
            f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n"
            "from d2lmgpu.machine import devices\n"
            "print(devices.num_cores(), devices.sharing(2, 0))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "1 simulated\n", done.stderr
    finally:
        group.rmdir()
