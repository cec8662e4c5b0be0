"""Start the hub: ``make hub``. Prints the address and, without a configured login, one for now.

The shared password of a try-out is made anew at each start, shown here once and written nowhere.
"""

import os
import secrets
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import settings as hub_settings

FOLDER = Path(__file__).resolve().parent


def main() -> NoReturn:
    environ = dict(os.environ)
    fresh = "HUB_AUTH" not in environ and "HUB_PASSWORD" not in environ
    if fresh:
        environ["HUB_PASSWORD"] = secrets.token_urlsafe(12)
    try:
        settings = hub_settings.read(environ)
    except hub_settings.SettingError as error:
        sys.exit(f"The hub does not start: {error}")
    if not (FOLDER / "node_modules/.bin/configurable-http-proxy").exists():
        sys.exit(f"The hub's proxy is missing: make setup, or npm ci --ignore-scripts in {FOLDER}")
    try:
        check_ports(settings)
    except OSError as error:
        sys.exit(f"The hub does not start: {error}")
    print(f"The hub will be at {settings.url}/")
    if fresh:
        print(f"Log in with any name, such as ada, and the password {environ['HUB_PASSWORD']}")
        print("The password holds until the hub stops. Ctrl+C stops it.")
    if settings.accounts == "one":  # a try-out; the state of a class is to be backed up
        remove = f"rm -r {shlex.quote(settings.state)}"
        print(
            f"What learners write stays in {settings.state}, with the hub's database, its key and"
            f" its copy of the course. To remove it all, when the hub has stopped: {remove}"
        )
    sys.stdout.flush()
    # Node.js may be beside Python, where the set-up puts it if the machine has none.
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
    # The hub ends servers and services by SIGINT, which they must not inherit as ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    config = sys.argv[1] if sys.argv[1:] else str(FOLDER / "jupyterhub_config.py")
    command = [sys.executable, "-m", "jupyterhub", f"--config={config}"]
    os.execve(sys.executable, command, environ)


def check_ports(settings) -> None:
    """Raise OSError, with what to do, for a port that another program has."""
    ports = {settings.port + 1: settings.hub_address}
    if not (Path(settings.state) / "proxy.pid").exists():  # else a hub was killed, its proxy not
        ports |= {settings.port: settings.address, settings.port + 2: "127.0.0.1"}
    for port, address in ports.items():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            socket.create_server((address, port), family=family).close()
        except OSError as error:
            raise OSError(
                f"port {port} of {address} is not to be had ({os.strerror(error.errno)}). Stop"
                " what has it, or name the first of three free ports in HUB_PORT, and in"
                " jupyterhub_url in _config.yml, to which the pages' rockets lead."
            ) from error


if __name__ == "__main__":
    main()
