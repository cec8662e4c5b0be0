"""``make hub-class``, with an ``/etc`` and an ``/opt`` of its own in place of a clean machine's.

The packages of its environments and of the proxy are those that are here: that takes minutes.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from running_hub import ROOT

LIVE = "etc/letsencrypt/live/hub.example.org"
OPTIONS = ["hub.example.org", "--users", "ada", "grace", "--admins", "ada"]
# All steps but those that install packages, and without those of a systemd that runs.
STEPS = f"""
import sys
sys.path.insert(0, {str(ROOT / "hub")!r})
import install
options = install.read_options()
install.check(options)
install.group()
install.service(options)
"""


@pytest.fixture
def machine(tmp_path, python):
    """A function that runs a command on a machine with a driver, whose /etc and /opt are new."""
    shutil.copytree("/etc", tmp_path / "etc", symlinks=True, ignore_dangling_symlinks=True)
    (tmp_path / "opt").mkdir()
    for name in ("mxnet", "torch"):
        (tmp_path / "opt" / name).symlink_to(Path(python).parents[1])
    live = tmp_path / LIVE
    live.mkdir(parents=True)
    for name in ("privkey.pem", "fullchain.pem"):
        (live / name).touch()
    commands = {"nvidia-smi": "", "systemctl": f"cat {tmp_path}/version"}
    if not shutil.which("systemd-analyze"):
        commands["systemd-analyze"] = ""  # then nothing here can verify the unit
    for name, does in commands.items():
        path = tmp_path / "commands" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    mounts = "".join(f"mount --bind {tmp_path}/{name} /{name} && " for name in ("etc", "opt"))
    # systemd-analyze writes there, and a machine's may be read-only
    mounts += "{ [ -w /tmp ] || mount -t tmpfs tmpfs /tmp; } && "

    def run(*command):
        kept = {name: text for name, text in os.environ.items() if not name.startswith("HUB_")}
        environ = kept | {"PATH": f"{path.parent}:{os.environ['PATH']}"}
        begin = ["unshare", "--mount", "sh", "-c", f'{mounts}exec "$@"', "sh"]
        options = {"env": environ, "capture_output": True, "text": True}
        return subprocess.run([*begin, *command], **options)

    return run


@pytest.mark.needs("root", "git", "node")
@pytest.mark.parametrize("version, limited", [(252, False), (255, True)])
def test_a_service_that_systemd_takes_and_settings_that_the_hub_takes(
    machine, python, tmp_path, version, limited
):
    (tmp_path / "version").write_text(f"systemd {version} ({version}.39-1)\n+PAM\n")
    command = [python, "-c", STEPS, *OPTIONS]
    done = machine(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    settings = tmp_path / "etc/d2lmgpu-hub.env"
    assert settings.stat().st_mode & 0o077 == 0
    assert "HUB_USERS=ada grace\n" in settings.read_text()
    assert ("HUB_MEMORY=8G\n" in settings.read_text()) is limited
    assert "learners:" in (tmp_path / "etc/group").read_text()
    unit = (tmp_path / "etc/systemd/system/d2lmgpu-hub.service").read_text()
    assert f"ExecStart=/opt/mxnet/bin/python {ROOT}/hub/start.py\n" in unit
    assert ("DelegateSubgroup=hub\n" in unit) is limited

    # Called again, it leaves the settings, and says what the hub would not take.
    settings.write_text(settings.read_text() + "HUB_GPUS_PER_LEARNER=many\n")
    done = machine(*command)
    assert done.returncode and "HUB_GPUS_PER_LEARNER" in done.stderr


@pytest.mark.needs("root", "git", "node")
@pytest.mark.parametrize("lacking", [f"{LIVE}/privkey.pem", "commands/nvidia-smi"])
def test_what_would_fail_later_is_one_line(machine, python, tmp_path, lacking):
    (tmp_path / lacking).unlink()
    done = machine(python, ROOT / "hub/install.py", *OPTIONS)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and Path(lacking).name in done.stderr
    assert not (tmp_path / "etc/d2lmgpu-hub.env").exists()
