"""``make hub``: the login that it prints lets you in, and lets nobody else in."""

import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from running_hub import ROOT, three_free_ports, wait_until


def start(tmp_path, script=ROOT / "hub/start.py", **settings):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HUB_")}
    environ = {**kept, "HUB_STATE": str(tmp_path / "state"), **settings}
    return subprocess.Popen(
        [sys.executable, str(script)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_it_prints_an_address_and_a_login_that_work(tmp_path):
    port = three_free_ports()
    hub = start(tmp_path, HUB_PORT=str(port))
    try:
        output = [hub.stdout.readline() for _ in range(4)]
        address = re.search(r"http://\S+/", output[0])[0]
        assert address == f"http://127.0.0.1:{port}/"
        password = re.search(r"the password (\S+)", output[1])[1]
        wait_until(lambda: answers(f"{address}hub/health"), 60, "the hub is up")
        assert log_in(address, password).endswith("/hub/home")
        assert "/hub/login" in log_in(address, "another-password")
        with socket.socket() as probe:
            probe.settimeout(5)
            assert probe.connect_ex(("127.0.0.2", port)) != 0, "only 127.0.0.1 is open"
    finally:
        hub.send_signal(signal.SIGINT)
        rest = hub.communicate(timeout=30)[0]
    assert password not in rest, "the log does not repeat the password"
    state = tmp_path / "state"
    assert {"course.git", "jupyterhub.sqlite"} <= {path.name for path in state.iterdir()}
    remove = re.search(r"To remove it all.*: (rm -r .*)", output[3])[1]
    subprocess.run(remove, shell=True, check=True)
    assert not state.exists()


def test_an_unsafe_setting_is_one_line_and_no_port(tmp_path):
    hub = start(tmp_path, HUB_ADDRESS="0.0.0.0")
    output = hub.communicate(timeout=60)[0]
    assert hub.returncode == 1
    assert output.startswith("The hub does not start: HUB_ADDRESS='0.0.0.0' can be reached")
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_port_that_is_taken_is_one_line(tmp_path, which):
    port = three_free_ports()
    with socket.create_server(("127.0.0.1", port + which)):
        hub = start(tmp_path, HUB_PORT=str(port))
        printed = hub.communicate(timeout=60)[0]
    assert hub.returncode == 1
    assert printed.startswith(f"The hub does not start: port {port + which} of 127.0.0.1 is not")
    assert "HUB_PORT" in printed and len(printed.splitlines()) == 1


def test_a_missing_proxy_is_one_line(tmp_path):
    copy = tmp_path / "hub"
    shutil.copytree(ROOT / "hub", copy, ignore=shutil.ignore_patterns("node_modules"))
    hub = start(tmp_path, copy / "start.py")
    output = hub.communicate(timeout=60)[0]
    assert hub.returncode == 1
    assert output == (
        f"The hub's proxy is missing: make setup, or npm ci --ignore-scripts in {copy}\n"
    )


def test_who_is_taken_off_the_list_is_no_longer_admitted(tmp_path):
    config = ROOT / "hub/jupyterhub_config.py"
    command = [sys.executable, "-m", "jupyterhub", "--show-config-json", f"--config={config}"]
    settings = {
        "HUB_STATE": str(tmp_path),
        "HUB_ACCOUNTS": "one",
        "HUB_AUTH": "pam",
        "HUB_USERS": "ada",
    }
    result = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    authenticator = json.loads(result.stdout)["Authenticator"]
    assert authenticator["allow_existing_users"] is False
    assert "allow_all" not in authenticator


def test_node_beside_python_is_found(monkeypatch, tmp_path):
    given = []
    monkeypatch.setenv("HUB_STATE", str(tmp_path))
    monkeypatch.setenv("PATH", "/elsewhere")
    monkeypatch.setattr(sys, "argv", ["start.py"])
    monkeypatch.setattr(signal, "signal", lambda *ignored: None)
    monkeypatch.setattr(os, "execve", lambda *call: given.append(call))
    importlib.import_module("start").main()
    folder = str(Path(sys.executable).parent)
    assert given[0][2]["PATH"] == f"{folder}{os.pathsep}/elsewhere"


def answers(url):
    try:
        return requests.get(url, timeout=5).ok
    except (requests.ConnectionError, requests.Timeout):
        return False


def log_in(address, password):
    """Log in as ada; returns the address of the page that this leads to."""
    session = requests.Session()
    page = session.get(f"{address}hub/login", timeout=30).text
    form = {"username": "ada", "password": password}
    form["_xsrf"] = re.search(r'name="_xsrf" value="([^"]+)"', page)[1]
    return session.post(f"{address}hub/login?next=%2Fhub%2Fhome", data=form, timeout=30).url
