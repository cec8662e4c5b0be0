"""Ten learners at once on one machine: ``pytest -s tests/hub/ten_learners.py``.

Each starts a server, brings the course, opens the chapter from scratch and runs it up to its first
training, all at the same time. Prints the peak memory of a learner, which hub/README.md gives.
"""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import nbformat
import psutil
import pytest
import requests
from learner import publish
from running_hub import ROOT, RunningHub, wait_until
from websocket import create_connection

LEARNERS = [f"learner-{i}" for i in range(10)]
CHAPTER = "chapters/scratch/pytorch.ipynb"
FIRST_TRAINING = "one_device = train("
SECONDS = 600  # a hang is a failure: on two cores ten servers start in about a minute


@pytest.fixture
def course(tmp_path):
    """The address of a repository with the chapter."""
    folder = tmp_path / "course"
    (folder / CHAPTER).parent.mkdir(parents=True)
    shutil.copy(ROOT / CHAPTER, folder / CHAPTER)
    publish(folder)
    return folder.as_uri()


@pytest.fixture
def hub(tmp_path):
    """A hub with two simulated GPUs for each learner."""
    count = str(2 * len(LEARNERS))
    with RunningHub(
        tmp_path, HUB_ACCOUNTS="one", HUB_SIMULATED_GPUS=count, D2LMGPU_PROFILE="test"
    ) as running:
        yield running


class Learner:
    """One learner's requests to the own server, and the kernel of the chapter."""

    def __init__(self, hub, name):
        self.hub, self.name = hub, name
        self.headers = {"Authorization": f"token {hub.user_token(name)}"}
        self.server = f"{hub.url}/user/{name}"

    def start(self):
        answer = self.hub.ask(self.name, {"gpus": 2})
        assert answer.status_code in (201, 202), answer.text
        ready = lambda: self.hub.servers().get(self.name, {}).get("ready")  # noqa: E731
        wait_until(ready, SECONDS, f"{self.name} is ready")

    def bring(self, course):
        """What a launch link does: nbgitpuller, followed to its end."""
        answer = requests.get(
            f"{self.server}/git-pull/api",
            params={"repo": course, "branch": "main"},
            headers=self.headers,
            timeout=SECONDS,
        )
        last = answer.text.strip().splitlines()[-1].removeprefix("data: ")
        assert json.loads(last)["phase"] == "finished", answer.text

    def open(self):
        """The chapter's notebook, and its kernel as a connection."""
        path = f"course/{CHAPTER}"
        contents = requests.get(
            f"{self.server}/api/contents/{path}", headers=self.headers, timeout=SECONDS
        )
        self.notebook = nbformat.from_dict(contents.json()["content"])
        session = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        answer = requests.post(
            f"{self.server}/api/sessions", json=session, headers=self.headers, timeout=SECONDS
        )
        assert answer.status_code == 201, answer.text
        kernel = answer.json()["kernel"]["id"]
        address = self.server.replace("http:", "ws:") + f"/api/kernels/{kernel}/channels"
        self.kernel = create_connection(address, header=self.headers, timeout=SECONDS)

    def run(self, source, number):
        """Run one cell; an AssertionError with what it said unless it succeeds."""
        header = {
            "msg_id": f"cell-{number}",
            "msg_type": "execute_request",
            "session": self.name,
            "username": self.name,
            "version": "5.3",
        }
        content = {"code": source, "silent": False, "store_history": True, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.kernel.send(json.dumps(message | {"channel": "shell"}))
        while True:
            reply = json.loads(self.kernel.recv())
            if reply["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if reply["msg_type"] == "execute_reply":
                assert reply["content"]["status"] == "ok", reply["content"]
                return

    def peak_memory(self):
        """Bytes: the most that the server and each process under it has held, added up."""
        server = self.hub.process_of(self.name)
        return sum(map(high_water, [server, *server.children(recursive=True)]))

    def study(self, course):
        """All of it; returns the learner's peak memory in bytes."""
        self.start()
        self.bring(course)
        self.open()
        for number, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                self.run(cell.source, number)
                if cell.source.startswith(FIRST_TRAINING):
                    return self.peak_memory()
        raise AssertionError(f"no cell of {CHAPTER} starts with {FIRST_TRAINING!r}")


def high_water(process: psutil.Process) -> int:
    """The most memory, in bytes, that a process has held: what Linux keeps as VmHWM."""
    with open(f"/proc/{process.pid}/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def test_all_of_ten_learners_finish(hub, course):
    learners = [Learner(hub, name) for name in LEARNERS if hub.add(name) is None]
    with ThreadPoolExecutor(len(learners)) as pool:
        peaks = list(pool.map(lambda learner: learner.study(course), learners))
    leases = hub.leases()
    assert sorted(leases) == sorted(LEARNERS)
    assert len({gpu for gpus in leases.values() for gpu in gpus}) == 2 * len(LEARNERS)
    mib = [peak / 2**20 for peak in peaks]
    print(f"\npeak memory of a learner: median {median(mib):.0f} MiB, most {max(mib):.0f} MiB")
