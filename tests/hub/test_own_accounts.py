"""Learners under Unix accounts of their own: files, environment and processes are kept apart.

Makes real accounts on this machine and removes them again; takes root.
"""

import grp
import json
import os
import pwd
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import accounts
import psutil
import pytest
import requests
import zmq
from gpu_slots import Refused
from open_folder import open_folder
from own_accounts import GROUP, learners_group
from processes import asked, running
from running_hub import RunningHub, wait_until

pytestmark = pytest.mark.needs("root", "useradd")
ADA, GRACE, LIN = "d2lmgpu-ada", "d2lmgpu-grace", "d2lmgpu-lin"
NOBODY = "d2lmgpu-nobody"  # no test makes this account


@pytest.fixture(scope="module")
def hub(tmp_path_factory, python):
    with (
        learners_group(ADA, GRACE, LIN),
        RunningHub(
            tmp_path_factory.mktemp("hub"),
            without_lab=True,
            HUB_AUTH="null",  # nobody logs in here: the tests ask by REST
            HUB_USERS=ADA,
            HUB_ACCOUNTS="own",
            HUB_CREATE_ACCOUNTS="1",
            HUB_GROUP=GROUP,
            HUB_PYTHON=python,
        ) as running,
    ):
        running.set_gpus("GPU-a", "GPU-b")
        yield running


def as_user(name, command):
    """Run ``command`` in a shell as ``name``, as that learner's own kernel could."""
    account = pwd.getpwnam(name)
    return subprocess.run(
        ["sh", "-c", command],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[grp.getgrnam(GROUP).gr_gid],
        capture_output=True,
        text=True,
    )


def test_one_learner_reads_nothing_of_another(hub):
    for learner in (ADA, GRACE):
        assert len(hub.start_server(learner, 1)) == 1
        assert hub.process_of(learner).username() == learner
    home = Path(pwd.getpwnam(ADA).pw_dir)
    notes = home / "notes.txt"
    assert as_user(ADA, f"echo mine > {notes}").returncode == 0
    pid, runtime = hub.process_of(ADA).pid, hub.runtime_folder(ADA)
    attempts = [f"cat {notes}", f"ls {home}", f"cat /proc/{pid}/environ", f"kill -9 {pid}"]
    for attempt in [*attempts, f"ls {runtime}"]:
        assert as_user(ADA, attempt.replace("kill -9", "kill -0")).returncode == 0, attempt
        assert as_user(GRACE, attempt).returncode != 0, attempt
    state = hub.folder / "state"
    assert as_user(GRACE, f"cat {state}/jupyterhub.sqlite {state}/cookie_secret").returncode != 0


# --- Homes ---


@pytest.fixture
def lin(hub):
    """An account that the machine has already, its home as a test makes it."""
    subprocess.run(["useradd", "--create-home", "--groups", GROUP, LIN], check=True)
    home = Path(pwd.getpwnam(LIN).pw_dir)
    (home / "notes.txt").write_text("mine")
    if GRACE not in hub.servers():  # whose account is made by it
        hub.start_server(GRACE)
    yield home
    if LIN in hub.servers():
        hub.stop_server(LIN)
    subprocess.run(["userdel", LIN], check=True)
    subprocess.run(["rm", "-rf", home, home.with_name(f"{LIN}-real")], check=True)


def reads(home):
    return as_user(GRACE, f"cat {home}/notes.txt").returncode == 0


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o777, 0o750, 0o770, 0o2775, 0o707])
def test_a_home_with_an_open_mode_is_closed(lin, mode):
    lin.chmod(mode)
    shutil.chown(lin, group=GROUP if mode & 0o070 else None, user=LIN)
    assert reads(lin)
    accounts.ensure(LIN, GROUP, create=False)
    assert not reads(lin)
    assert lin.stat().st_mode & 0o7777 == mode & 0o7700, "what is said of its owner stays"
    assert as_user(LIN, f"cat {lin}/notes.txt").stdout == "mine"


def test_the_hub_closes_a_home_behind_a_link(hub, lin):
    real = lin.rename(lin.with_name(f"{LIN}-real"))
    lin.symlink_to(real)
    real.chmod(0o755)
    assert reads(lin)
    hub.start_server(LIN)
    assert not reads(lin) and not reads(real)
    assert hub.ask_server(LIN, "GET", "files/notes.txt").text == "mine"


@pytest.mark.parametrize(
    "command, words",
    [
        ("chown {grace} {home}", "belongs to another account"),
        ("rm -r {home} && ln -s ~{grace} {home}", "belongs to another account"),
        ("rm -r {home} && ln -s / {home}", "belongs to another account"),
        ("rm -r {home}", "No such file"),
        ("rm -r {home} && touch {home}", "Not a directory"),
    ],
)
def test_a_home_that_is_not_the_learners_is_refused(hub, lin, command, words):
    subprocess.run(command.format(grace=GRACE, home=lin), shell=True, check=True)
    before = Path("/").stat().st_mode, Path(pwd.getpwnam(GRACE).pw_dir).stat().st_mode
    answer = hub.ask(LIN, {})
    assert answer.status_code == 403
    message = answer.json()["message"]
    assert f"{lin}, cannot be closed" in message and words in message
    after = Path("/").stat().st_mode, Path(pwd.getpwnam(GRACE).pw_dir).stat().st_mode
    assert after == before


# --- Kernels ---


@pytest.fixture(scope="module")
def two(hub):
    """The hub with servers of Ada and Grace; Ada's has a kernel that runs."""
    for learner in (ADA, GRACE):
        if learner not in hub.servers():
            hub.start_server(learner)
    hub.ada = hub.start_kernel(ADA)
    hub.ada.run("answer = 42")
    return hub


def start_as(name, command):
    """Start ``command`` as ``name``."""
    account = pwd.getpwnam(name)
    return subprocess.Popen(
        command, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/"
    )


@pytest.fixture
def spy_folder():
    with open_folder("spy") as folder:
        shutil.copy(Path(__file__).with_name("spy.py"), folder)
        shutil.chown(folder, GRACE)
        yield folder


@pytest.fixture
def spy(two, python, spy_folder):
    """What Grace hears at all ports and sockets, as a file; a port of the test's is among them."""
    publisher = zmq.Context().socket(zmq.PUB)
    publisher.bind_to_random_port("tcp://127.0.0.1")
    heard = spy_folder / "heard"
    process = start_as(GRACE, [python, spy_folder / "spy.py", heard])

    def hears(word):
        publisher.send(word)
        return heard.exists() and word in heard.read_bytes()

    try:
        wait_until(lambda: hears(b"the test's own port, first"), 60, "the spy listens")
        yield SimpleNamespace(heard=heard, hears=hears)
    finally:
        process.kill()
        process.wait()
        publisher.close()


def test_a_spy_hears_nothing_of_what_another_runs_and_sees(two, spy):
    for turn in range(20):
        assert two.ada.run(f"print('MY SECRET answer', answer, {turn})").startswith("MY SECRET")
    wait_until(lambda: spy.hears(b"the test's own port, last"), 60, "the spy still listens")
    assert b"SECRET" not in spy.heard.read_bytes()


def test_another_learner_opens_no_socket_of_a_kernel(two, python):
    (file,) = two.runtime_folder(ADA).glob(f"kernel-{two.ada.id}.json")
    sockets = sorted(two.runtime_folder(ADA).glob(f"kernel-{two.ada.id}-ipc-*"))
    assert len(sockets) == 5 and json.loads(file.read_text())["transport"] == "ipc"
    for path in sockets:
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        assert as_user(ADA, f'{python} -c "{connect}"').returncode == 0
        refused = as_user(GRACE, f'{python} -c "{connect}"')
        assert "PermissionError" in refused.stderr, refused


def listening(name):
    """Port -> command line of what the account ``name`` has listening."""
    commands = {}
    for process in running(lambda process: process.username() == name):
        command = asked(process.cmdline)
        for connection in asked(partial(process.net_connections, "tcp")) or ():
            if connection.status == psutil.CONN_LISTEN:
                commands[connection.laddr.port] = command
    return commands


def test_what_still_listens_at_ports_lets_nobody_in(two, python):
    """The server itself, which asks for a token; and of each kernel the door by which processes
    that it forks print, which asks for sixteen random bytes."""
    ports = listening(ADA)
    pipes = {port for port, command in ports.items() if "ipykernel_launcher" in command}
    (server,) = set(ports) - pipes
    token = {"Authorization": f"token {two.user_token(GRACE)}"}
    for path in ("api/contents", "api/kernels", "lab", "files/notes.txt"):
        url = f"http://127.0.0.1:{server}/user/{ADA}/{path}"
        assert requests.get(url, timeout=30, allow_redirects=False).status_code in (302, 403)
        answer = requests.get(url, headers=token, timeout=30, allow_redirects=False)
        assert answer.status_code == 403, path
    context = zmq.Context()
    pushing = context.socket(zmq.PUSH)
    for port in pipes:
        pushing.connect(f"tcp://127.0.0.1:{port}")
    for _ in range(100):
        pushing.send_multipart([os.urandom(16), b"stream", b"<IDS|MSG>", b"{}"])
    # It shows that somebody knocked, and that is all.
    assert "mine\n" in two.ada.run("print('mine')")
    context.destroy(linger=0)


def test_processes_that_a_kernel_forks_print_still(two):
    code = "import os\nif not (pid := os.fork()):\n    print('from a child', flush=True)\n"
    code += "    os._exit(0)\nos.waitpid(pid, 0)[1]"
    id = two.ada.send("shell", "execute_request", {"code": code, "silent": False})
    content, _ = two.ada.answer_to(id, "stream")  # it may come after the cell's end
    assert "from a child" in content["text"]


def test_the_hub_updates_without_ending_servers(hub):
    if ADA not in hub.servers():
        hub.start_server(ADA, 1)
    server, leases = hub.process_of(ADA), hub.leases()
    hub.end()  # as a service is stopped
    assert server.is_running()
    hub.start()
    assert hub.leases() == leases
    assert hub.process_of(ADA) == server


@pytest.mark.parametrize("name", ["root", "daemon"])
def test_a_name_from_outside_never_becomes_an_administrator(hub, name):
    answer = hub.ask(name, {})
    assert answer.status_code == 403
    assert f"not in the group {GROUP}" in answer.json()["message"]


def test_a_name_that_unix_would_not_have_is_refused(hub):
    answer = hub.ask("mei;reboot", {})
    assert answer.status_code == 403
    assert "cannot be the name of a Unix account" in answer.json()["message"]


def test_without_permission_no_account_is_made():
    with pytest.raises(Refused, match="has no account") as refusal:
        accounts.ensure(NOBODY, GROUP, create=False)
    assert refusal.value.status_code == 403
