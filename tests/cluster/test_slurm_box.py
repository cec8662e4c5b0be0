"""A Slurm in the box: idle at once, with GPUs that are counted, and gone without a trace."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from box_traces import SlurmCluster, cluster_command, traces_of

from d2lmgpu.process.cluster import box, state
from d2lmgpu.process.cluster import slurm as slurm_of_a_box


def test_it_is_idle_in_ten_seconds_and_gone_without_a_trace(tmp_path):
    folder, users = tmp_path / "cluster", pwd.getpwall()
    for _ in range(2):
        start = time.monotonic()
        assert cluster_command("up", "--hosts", 4, "--slurm", folder=folder).returncode == 0
        assert time.monotonic() - start < 10
        form = "--format=%N %T %G %c"
        nodes = SlurmCluster(folder).ask("sinfo", "--noheader", "--Node", form).splitlines()
        assert sorted(nodes) == [f"n{i} idle gpu:2 4" for i in range(1, 5)]
        assert cluster_command("down", folder=folder).returncode == 0
        assert traces_of(folder) == []
    assert pwd.getpwall() == users


def test_it_starts_where_there_are_no_control_groups(tmp_path):
    folder = tmp_path / "cluster"
    hide = 'mount -t tmpfs -o ro tmpfs /sys/fs/cgroup && exec "$@"'
    as_in_a_container = ["unshare", "--mount", "sh", "-c", hide, "sh"]
    done = cluster_command("up", "--slurm", folder=folder, within=as_in_a_container)
    assert done.returncode == 0, done.stderr
    assert cluster_command("down", folder=folder).returncode == 0


def test_a_node_that_ends_at_once_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv(state.VARIABLE, str(tmp_path / "cluster"))
    write = slurm_of_a_box.write_files

    def with_a_mistake(folder, *addresses):
        write(folder, *addresses)
        (folder / "cgroup.conf").write_text("CgroupPlugin=none\n", encoding="utf-8")

    monkeypatch.setattr(slurm_of_a_box, "write_files", with_a_mistake)
    with pytest.raises(state.ClusterError, match=r"n1 has ended: .*slurmd initialization failed"):
        box.up(1, with_slurm=True)


def test_a_job_runs_on_its_nodes_with_the_gpus_that_it_asked_for(slurm):
    script = 'echo "$(hostname) $CUDA_VISIBLE_DEVICES $TMPDIR"'
    got = slurm.ask("srun", "--nodes=2", "--gres=gpu:2", "sh", "-c", script).splitlines()
    assert sorted(got) == ["n1 0,1 /run", "n2 0,1 /run"]
    too_many = ["srun", "--gres=gpu:3", "true"]
    with pytest.raises(subprocess.CalledProcessError):
        slurm.ask(*too_many)


def test_the_munge_key_is_its_owner_s_and_made_for_this_cluster(slurm, tmp_path):
    key = slurm.folder / "munge.key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.stat().st_uid == os.geteuid()
    assert slurm.folder.stat().st_mode & 0o777 == 0o700
    files = [file for file in slurm.folder.rglob("*") if file.is_file() and file != key]
    assert not any(key.read_bytes() in file.read_bytes() for file in files)
    other = tmp_path / "cluster"
    assert cluster_command("up", "--hosts", 1, "--slurm", folder=other).returncode == 0
    assert (other / "munge.key").read_bytes() != key.read_bytes()
    assert cluster_command("down", folder=other).returncode == 0


def test_the_controller_listens_on_the_bridge_only(slurm):
    (controller,) = psutil.Process(slurm.state["slurm"]).children()
    addresses = psutil.net_if_addrs()[slurm.state["bridge"]]
    (bridge,) = [a.address for a in addresses if a.family == socket.AF_INET]
    for process in (controller, *controller.children(recursive=True)):
        listening = [c.laddr.ip for c in process.net_connections() if c.status == "LISTEN"]
        assert listening == [bridge] * (process.name() == "slurmctld")
    for host in slurm.state["hosts"].values():
        inside = ["nsenter", "-t", str(host["pid"]), "-n"]
        listening = subprocess.check_output([*inside, "ss", "-Hltn"], text=True)
        ports = {line.split()[3] for line in listening.splitlines()}
        assert ports == {f"{host['address']}:22", f"{host['address']}:6818"}


MOMENTS = ["munge.key", "munge.socket", "head.log", "slurmctld.log", "slurmd-n2.log", "state.json"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_killed_up_leaves_goes_with_the_next_command(tmp_path, moment):
    folder = tmp_path / "cluster"
    command = [sys.executable, "-m", "d2lmgpu", "cluster", "up", "--slurm"]
    environ = os.environ | {"D2LMGPU_CLUSTER": str(folder)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not (folder / moment).exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert (folder / moment).exists()
    assert cluster_command("down", folder=folder).returncode == 0
    assert traces_of(folder) == []


def test_what_slurm_lacks_is_named_only_to_who_wants_one(tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in box.PROGRAMS:
        (programs / program).symlink_to(shutil.which(program))
    (programs / "true").symlink_to(shutil.which("true"))
    monkeypatch.setenv("PATH", str(programs))
    assert box.missing() == []
    lacking = " ".join(box.missing(with_slurm=True))
    assert all(program in lacking for program in slurm_of_a_box.PROGRAMS)
    folder = Path(tmp_path / "cluster")
    done = cluster_command("up", "--slurm", folder=folder)
    assert done.returncode == 1 and "slurmctld" in done.stderr and not folder.exists()
