"""A real JupyterHub with its real proxy, started, asked and ended by a test."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import requests
import websocket
from processes import asked, running

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "a-password-for-tests"
# Half the start-up time, where a test asks only whether there is a server and what it may do.
WITHOUT = ["jupyterlab", "notebook", "notebook_shim", "jupyter_lsp", "jupyterlab_jupytext"]
WITHOUT += ["jupyter_resource_usage"]


def wait_until(condition, seconds, what):
    """The first true answer of ``condition()``; an AssertionError after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {what}")


class RunningHub:
    """``with RunningHub(folder, HUB_…="…") as hub``: started by hub/start.py, ended with it.

    ``more`` is Python for the end of JupyterHub's configuration, ``root`` the course's checkout.
    ``unedited``: on the port and with the password of ``make hub``, for which nothing is set.
    """

    def __init__(
        self, folder: Path, more="", without_lab=False, root=ROOT, unedited=False, **settings
    ):
        self.more = more
        self.root = root
        self.without_lab = without_lab
        self.folder = folder
        self.port = 8000 if unedited else three_free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.log_path = folder / "hub.log"
        self.gpu_list = folder / "gpus"
        self.gpu_list.touch()
        chosen = {} if unedited else {"HUB_PORT": str(self.port), "HUB_PASSWORD": PASSWORD}
        self.settings = {"HUB_STATE": str(folder / "state"), **chosen, **settings}

    def __enter__(self):
        commands = self.folder / "commands"
        commands.mkdir(exist_ok=True)
        driver = commands / "nvidia-smi"
        driver.write_text(f"#!/bin/sh\ncat {self.gpu_list}\n")
        driver.chmod(0o755)
        # The hub's own configuration, and a service for the test with a token of its own.
        config = self.folder / "config.py"
        config.write_text(
            f"load_subconfig({str(self.root / 'hub/jupyterhub_config.py')!r})\n"
            "c = get_config()\n"
            f"c.JupyterHub.services.append(dict(name='test', api_token={self.token!r}))\n"
            "c.JupyterHub.load_roles.append(dict(name='test', services=['test'],\n"
            "    scopes=['admin:users', 'admin:servers', 'admin:server_state', 'tokens']))\n"
            # After ten seconds it would say only that the server starts, and not how that ended.
            "c.JupyterHub.tornado_settings['slow_spawn_timeout'] = 60\n" + self.more
        )
        if self.without_lab:
            extensions = {"jpserver_extensions": dict.fromkeys(WITHOUT, False)}
            jupyter = self.folder / "jupyter"
            jupyter.mkdir(exist_ok=True)
            (jupyter / "jupyter_server_config.json").write_text(
                json.dumps({"ServerApp": extensions})
            )
            app = "jupyter_server.serverapp.ServerApp"
            extra = {"JUPYTERHUB_SINGLEUSER_APP": app, "JUPYTER_CONFIG_PATH": str(jupyter)}
            config.write_text(config.read_text() + f"c.Spawner.environment.update({extra!r})\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HUB_")}
        self.environ = {**kept, **self.settings, "PATH": f"{commands}:{os.environ['PATH']}"}
        try:
            self.start()
        except BaseException:  # whoever asks its port next must not meet this hub
            self.end()
            self.end_orphans()
            raise
        return self

    def __exit__(self, *error):
        try:
            self.stop_all()
        finally:
            try:
                self.end()
            finally:
                self.end_orphans()

    def start(self):
        """Start the hub's process and wait until it answers."""
        command = [sys.executable, str(self.root / "hub/start.py"), str(self.folder / "config.py")]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environ, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self.is_healthy, 60, f"the hub is up; see {self.log_path}")

    def is_healthy(self):
        assert self.process.poll() is None, f"the hub ended:\n{self.log()}"
        try:
            return requests.get(f"{self.url}/hub/health", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def end(self, how=signal.SIGTERM):
        """End the hub's process with the signal ``how``; servers are another matter."""
        self.process.send_signal(how)
        self.process.wait(30)

    def end_orphans(self):
        """Kill what still runs of this hub: nothing, unless a test failed or killed the hub."""

        def ours(process):
            environ = process.environ()
            api = environ.get("D2LMGPU_LEASE") or environ.get("JUPYTERHUB_API_URL") or ""
            state = environ.get("HUB_STATE")  # which the proxy has, too
            return state == self.settings["HUB_STATE"] or api.startswith(self.mark("").strip())

        for process in running(ours):
            asked(process.kill)

    def mark(self, user):
        return f"http://127.0.0.1:{self.port + 1}/hub/api {user}"

    @property
    def password(self):
        """What everybody logs in with: chosen by the test, or printed by the hub."""
        chosen = self.settings.get("HUB_PASSWORD")
        return chosen or re.findall(r"the password (\S+)", self.log())[-1]

    def log(self):
        return self.log_path.read_text(errors="replace")

    def set_gpus(self, *ids):
        """What the driver reports from now on."""
        self.gpu_list.write_text("".join(f"{gpu}\n" for gpu in ids))

    # --- REST, as an administrator ---

    def api(self, method, path, **arguments):
        headers = {"Authorization": f"token {self.token}"}
        url = f"{self.url}/hub/api/{path}"
        return requests.request(method, url, headers=headers, timeout=120, **arguments)

    def add(self, *users):
        for user in users:
            assert self.api("POST", f"users/{user}").status_code in (201, 409)

    def ask(self, user, options):
        """Ask for a server with these start options; returns the answer."""
        self.add(user)
        return self.api("POST", f"users/{user}/server", json=options)

    def start_server(self, user, gpus=0):
        """Start a server and wait until it is ready; returns its GPUs."""
        answer = self.ask(user, {"gpus": gpus})
        assert answer.status_code in (201, 202), answer.text
        wait_until(lambda: self.servers().get(user, {}).get("ready"), 120, f"{user} is ready")
        return self.leases().get(user, [])

    def stop_server(self, user):
        answer = self.api("DELETE", f"users/{user}/server")
        assert answer.status_code in (202, 204), answer.text
        wait_until(lambda: user not in self.servers(), 60, f"{user} has stopped")

    def servers(self):
        """User -> the hub's model of the server, for those that have one."""
        users = self.api("GET", "users").json()
        return {u["name"]: u["servers"][""] for u in users if "" in u.get("servers", {})}

    def leases(self):
        """User -> GPU ids, as the hub has written them down."""
        states = {user: server["state"] or {} for user, server in self.servers().items()}
        return {user: state["gpus"] for user, state in states.items() if "gpus" in state}

    def stop_all(self):
        for user in list(self.servers()):
            self.stop_server(user)

    def process_of(self, user):
        return psutil.Process(self.servers()[user]["state"]["pid"])

    def runtime_folder(self, user):
        """Where the server of ``user`` keeps the keys of its kernels."""
        return Path(self.servers()[user]["state"]["runtime"])

    def user_token(self, user):
        return self.api("POST", f"users/{user}/tokens", json={"note": "test"}).json()["token"]

    def ask_server(self, user, method, path, by=None, **arguments):
        """What the server of ``user`` answers to the token of ``by``, or of ``user``."""
        headers = {"Authorization": f"token {self.user_token(by or user)}"}
        url = f"{self.url}/user/{user}/{path}"
        return requests.request(method, url, headers=headers, timeout=60, **arguments)

    def start_kernel(self, user):
        """Start a kernel in the server of ``user``; returns a ``Kernel``."""
        answer = self.ask_server(user, "POST", "api/kernels", json={})
        assert answer.ok, answer.text
        return Kernel(self, user, answer.json()["id"])

    # --- a browser's requests ---

    def login(self, user):
        """A session with the cookies of ``user``, logged in through the form."""
        session = requests.Session()
        page = session.get(f"{self.url}/hub/login", timeout=30)
        xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.text)[1]
        form = {"username": user, "password": self.password, "_xsrf": xsrf}
        answer = session.post(f"{self.url}/hub/login?next=%2Fhub%2Fhome", data=form, timeout=30)
        assert answer.url == f"{self.url}/hub/home", (answer.url, answer.status_code)
        return session

    def choose(self, session, gpus):
        """Send the form in the browser ``session`` with so many GPUs; returns the answer."""
        page = session.get(f"{self.url}/hub/spawn", timeout=30)
        assert "How many GPUs?" in page.text
        xsrf = re.search(r'name="_xsrf" value="([^"]+)"|_xsrf=([^"]+)"', page.text)
        form = {"gpus": str(gpus), "_xsrf": xsrf[1] or xsrf[2]}
        return session.post(f"{self.url}/hub/spawn", data=form, timeout=120)


class Kernel:
    """A running kernel of a learner's server, asked as JupyterLab asks it."""

    def __init__(self, hub, user, id):
        self.id = id
        address = f"{hub.url}/user/{user}/api/kernels/{id}/channels".replace("http:", "ws:")
        header = {"Authorization": f"token {hub.user_token(user)}"}
        self.channels = websocket.create_connection(address, header=header, timeout=120)

    def send(self, channel, type, content):
        """Send a message; returns its id."""
        header = {"msg_id": secrets.token_hex(8), "msg_type": type, "version": "5.4"}
        message = {"channel": channel, "header": header, "content": content}
        self.channels.send(json.dumps(message | {"parent_header": {}, "metadata": {}}))
        return header["msg_id"]

    def answer_to(self, id, type):
        """The content of the next message of ``type`` that answers ``id``, and texts before it."""
        texts = []
        while True:
            message = json.loads(self.channels.recv())
            if message["parent_header"].get("msg_id") != id:
                continue
            texts.append(message["content"].get("text", ""))
            if message["msg_type"] == type:
                return message["content"], "".join(texts)

    def run(self, code):
        """Run a cell; returns what it prints."""
        id = self.send("shell", "execute_request", {"code": code, "silent": False})
        state = ""
        printed = ""
        while state != "idle":
            content, text = self.answer_to(id, "status")
            state, printed = content["execution_state"], printed + text
        return printed


def three_free_ports():
    """The first of three neighbouring free ports: the proxy, the hub, the proxy's own door."""
    # Below those that the system gives by itself, to connections as well: 32768 to 60999.
    for first in range(20000 + os.getpid() % 4000 * 3, 32766, 3):
        try:
            for port in range(first, first + 3):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no three free ports in a row")
