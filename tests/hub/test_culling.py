"""Forgotten GPUs come back by themselves; what works on, unwatched, is not taken for forgotten."""

import json
import shlex

import websocket
from running_hub import RunningHub, wait_until

# What a learner leaves behind, without a word; it ends when the file `go` is in the home.
IN_A_CELL = """
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.1)
"""
# These compute a tenth of a second and more of each one, which is far above an idle kernel's share.
COUNT = "i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done"
LOOP = f"sh -c 'while [ ! -e go ]; do {COUNT}; sleep 0.5; done'"
IN_A_PROGRAM = f"import subprocess; subprocess.Popen({shlex.split(LOOP)})"
IN_A_TERMINAL = "while [ ! -e go ]; do sleep 1; done"
AS_A_JOB = "(while [ ! -e go ]; do sleep 1; done) &"
# Whoever started these is gone, and with it their terminal or their kernel.
WITHOUT_A_TERMINAL = f"nohup {LOOP} >/dev/null 2>&1 & exit"
WITHOUT_A_KERNEL = f"""
import os, subprocess
subprocess.Popen("setsid {LOOP} &", shell=True)
os._exit(0)
"""


def run_and_leave(hub, user, code):
    """Start ``code`` in a kernel of ``user``, and close the browser."""
    kernel = hub.start_kernel(user)
    kernel.send("shell", "execute_request", {"code": code, "silent": False})
    kernel.channels.close()


def type_and_leave(hub, user, line):
    """Type ``line`` into a terminal of ``user``, and close the browser."""
    name = hub.ask_server(user, "POST", "api/terminals").json()["name"]
    address = f"{hub.url}/user/{user}/terminals/websocket/{name}".replace("http:", "ws:")
    header = {"Authorization": f"token {hub.user_token(user)}"}
    terminal = websocket.create_connection(address, header=header, timeout=60)
    terminal.send(json.dumps(["stdin", f"echo st''arted; {line}\r"]))
    while "started" not in terminal.recv():
        pass
    terminal.close()


def wait_until_all_are_gone(hub):
    """The culler stops one server after another."""
    while before := len(hub.servers()):
        wait_until(
            lambda before=before: len(hub.servers()) < before, 120, "the next idle one is gone"
        )


def test_idle_servers_and_those_silent_for_too_long_are_stopped(tmp_path):
    settings = {"HUB_ACCOUNTS": "one", "HUB_IDLE_TIMEOUT": "16", "HUB_SILENT_TIMEOUT": "1"}
    with RunningHub(tmp_path, without_lab=True, **settings) as hub:
        hub.set_gpus("GPU-a")
        hub.start_server("mei")
        run_and_leave(hub, "mei", IN_A_CELL)
        assert hub.start_server("ada", 1) == ["GPU-a"]
        wait_until_all_are_gone(hub)
        assert hub.start_server("grace", 1) == ["GPU-a"]


def test_what_works_without_a_word_is_kept_until_its_work_is_over(tmp_path):
    """For longer than an idle server lives, which one beside them shows."""
    left = {
        "ada": lambda: run_and_leave(hub, "ada", IN_A_CELL),
        "grace": lambda: run_and_leave(hub, "grace", IN_A_PROGRAM),
        "lin": lambda: type_and_leave(hub, "lin", IN_A_TERMINAL),
        "mei": lambda: type_and_leave(hub, "mei", AS_A_JOB),
        "noor": lambda: type_and_leave(hub, "noor", WITHOUT_A_TERMINAL),
        "tom": lambda: run_and_leave(hub, "tom", WITHOUT_A_KERNEL),
    }
    settings = {"HUB_ACCOUNTS": "one", "HUB_IDLE_TIMEOUT": "16"}
    with RunningHub(tmp_path, without_lab=True, **settings) as hub:
        for user, leave in left.items():
            hub.start_server(user)
            leave()
        hub.start_server("idle")
        wait_until(lambda: "idle" not in hub.servers(), 120, "the idle server is gone")
        assert set(hub.servers()) == set(left)
        for user in left:
            (tmp_path / f"state/home/{user}/go").touch()
        wait_until_all_are_gone(hub)
