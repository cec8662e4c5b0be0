"""Makes of a machine with NVIDIA GPUs a hub for a class: as root, ``make hub-class``.

    python3.11 hub/install.py DOMAIN --users ada grace --admins ada

from a clone of the course where every account can read it, /opt/course say. It makes an environment
for each framework, the proxy, the learners' Unix group, the hub's settings and its systemd service,
and tries the settings. Each step is printed; after a failure the next call does what is missing.
Settings that are there already stay as they are.
"""

import argparse
import grp
import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
COURSE = FOLDER.parent
GROUP = "learners"
NEEDED = ("git", "node", "npm")
# Of requirements.txt, what an environment does not get: the other framework, and what
# requirements-gpu.txt has in its place.
LEFT_OUT = {"mxnet": ("mxnet", "torch", "torchvision"), "torch": ("mxnet",)}
UNIT = Path("/etc/systemd/system/d2lmgpu-hub.service")
SETTINGS = Path("/etc/d2lmgpu-hub.env")
PYTHON = {name: Path(f"/opt/{name}/bin/python") for name in LEFT_OUT}
SUBGROUPS = 254  # the version of systemd that knows DelegateSubgroup
SERVICE = """\
[Unit]
Description=Hands-On Multi-GPU Training
Wants=network-online.target
After=network-online.target

[Service]
EnvironmentFile={settings}
ExecStart={python} {hub}/start.py
{delegation}# A restart of the hub leaves the learners' servers running, and finds them again.
KillMode=process
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
DELEGATION = """\
# The limits of each learner are sub-groups of the hub's.
Delegate=yes
DelegateSubgroup=hub
"""
CHOSEN = """\
HUB_ADDRESS=0.0.0.0
HUB_PORT=443
HUB_TLS_KEY={key}
HUB_TLS_CERT={cert}
HUB_AUTH=pam
HUB_USERS={users}
HUB_ADMINS={admins}
HUB_CREATE_ACCOUNTS=1
HUB_GPUS_PER_LEARNER=2
"""
LIMITS = """\
HUB_MEMORY=8G
HUB_CPUS=4
"""


def check(options) -> None:
    """Raise SystemExit for what would fail after minutes."""
    if os.geteuid():
        sys.exit("The hub of a class is installed as root: each learner gets a Unix account.")
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"This is Python {sys.version.split()[0]}, and MXNet needs 3.11: call python3.11.")
    if missing := [program for program in NEEDED if not shutil.which(program)]:
        sys.exit(f"Missing here: {', '.join(missing)}. Install them; Node.js from version 20 on.")
    if not shutil.which("nvidia-smi"):
        sys.exit("There is no NVIDIA driver here (nvidia-smi): install it first.")
    python = Path(sys.executable).resolve()
    for path in (FOLDER, *FOLDER.parents, python, *python.parents):
        if not path.stat().st_mode & 0o001:
            sys.exit(
                f"{path} is closed to learners: clone the course to /opt/course, and take a Python"
                " that every account can run, such as the system's."
            )
    for path in (options.key, options.cert):
        if not SETTINGS.exists() and not Path(path).is_file():
            sys.exit(
                f"There is no certificate {path}: certbot certonly --standalone -d"
                f" {options.domain} gets one, or name yours by --key and --cert."
            )


def environments() -> None:
    """MXNet and PyTorch have one each: their CUDA libraries overwrite each other's."""
    lines = (COURSE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    for name, python in PYTHON.items():
        if not python.exists():
            run(sys.executable, "-m", "venv", python.parents[1])
        wanted = [line for line in lines if line.partition("==")[0] not in LEFT_OUT[name]]
        more = ["-r", COURSE / "requirements-gpu.txt"] if name == "mxnet" else []
        run(python, "-m", "pip", "install", "-r", "/dev/stdin", *more, input="\n".join(wanted))
        run(python, "-m", "pip", "install", "--no-deps", COURSE)
    run(PYTHON["mxnet"], FOLDER / "kernel.py", "install", *PYTHON.values())


def proxy() -> None:
    """What the hub's address leads to."""
    run("npm", "ci", "--ignore-scripts", cwd=FOLDER)


def group() -> None:
    """The Unix group of those who get a server."""
    try:
        grp.getgrnam(GROUP)
    except KeyError:
        run("groupadd", GROUP)


def service(options) -> None:
    """The unit, and the settings, which only root reads: a login's secrets go there."""
    version = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, check=True)
    limited = int(re.search(r"\d+", version.stdout)[0]) >= SUBGROUPS
    if not SETTINGS.exists():
        users, admins = " ".join(options.users), " ".join(options.admins)
        chosen = CHOSEN.format(key=options.key, cert=options.cert, users=users, admins=admins)
        write(SETTINGS, chosen + (LIMITS if limited else ""), 0o600)
    if not limited:
        print(
            f"No limits of memory and CPU, which take systemd {SUBGROUPS}: with this one a restart"
            " of the hub fails while servers run. Do not set HUB_MEMORY and HUB_CPUS."
        )
    names = {"settings": SETTINGS, "python": PYTHON["mxnet"], "hub": FOLDER}
    write(UNIT, SERVICE.format(delegation=DELEGATION if limited else "", **names), 0o644)
    run("systemd-analyze", "verify", UNIT)
    given = (line.partition("=") for line in SETTINGS.read_text(encoding="utf-8").splitlines())
    environ = {name: value.strip("\"'") for name, _, value in given if name and name[0] != "#"}
    run(PYTHON["mxnet"], FOLDER / "settings.py", env={"PATH": os.environ["PATH"]} | environ)


def start(options) -> None:
    """Start the service, now and whenever the machine starts."""
    if not Path("/run/systemd/system").exists():
        sys.exit("All is there, and no systemd runs on this machine to start it.")
    run("systemctl", "daemon-reload")
    run("systemctl", "enable", "--now", UNIT.name)
    print(f"The hub: https://{options.domain}/. Its settings: {SETTINGS}; after a change:")
    print(f"systemctl restart {UNIT.stem}. Its log: journalctl -u {UNIT.stem}")


def run(*command, **options) -> None:
    """Run ``command``, and print it before; SystemExit with its status if it fails."""
    print("+", *command, flush=True)
    text = "input" in options
    done = subprocess.run([str(part) for part in command], text=text, **options)
    if done.returncode:
        sys.exit(f"That failed (exit status {done.returncode}). Mend it, and call this again.")


def write(path, text, mode) -> None:
    print("+ write", path, flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text, encoding="utf-8")


def read_options() -> Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domain", help="the hub's name, such as hub.example.org")
    parser.add_argument("--users", nargs="+", required=True, help="the learners' login names")
    parser.add_argument("--admins", nargs="+", required=True, help="those who see all servers")
    parser.add_argument("--key", help="of the certificate, else that of certbot")
    parser.add_argument("--cert")
    options = parser.parse_args()
    certbot = f"/etc/letsencrypt/live/{options.domain}"
    options.key = options.key or f"{certbot}/privkey.pem"
    options.cert = options.cert or f"{certbot}/fullchain.pem"
    return options


def main() -> None:
    options = read_options()
    check(options)
    environments()
    proxy()
    group()
    service(options)
    start(options)


if __name__ == "__main__":
    main()
