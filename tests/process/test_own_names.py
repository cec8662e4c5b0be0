"""A notebook or script beside a reader's file that is called as a module of Python's own."""

import json
import subprocess
import sys

import pytest
from jupyter_kernel import Kernel
from soaking import sample

NAMES = ["random", "queue", "token", "json", "select", "signal", "socket", "struct", "types"]
IMPORTED = "import json, queue, random, select, signal, socket, struct, token"
SCRIPT = f"""{IMPORTED}
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(40):
    optimizer.zero_grad()
    net(torch.ones(8, 2)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"raise ImportError('the reader\\'s {name}.py')")
    (folder / "helper.py").write_text("def answer(): return 42")
    return folder


@pytest.fixture(scope="module")
def kernel(folder):
    with Kernel(folder) as kernel:
        kernel.run(f"{IMPORTED}\nfrom d2lmgpu.launch import launch\nimport os, sys")
        yield kernel


CELL = """
def worker():
    import json, queue, random, select, signal, socket, struct, token, types
    import helper
    own = os.path.dirname(os.__file__)
    return json.dumps(helper.answer()), random.__file__ == os.path.join(own, "random.py")
"""


@pytest.mark.parametrize("beginning", sample(1, ["sys.path.insert(0, os.getcwd())", ""]))
def test_launch_takes_pythons_own(kernel, beginning):
    kernel.run(f"{CELL}\n{beginning}")
    assert kernel.run("launch(worker, num_processes=1)") == "[('42', True)]"


def test_an_exercise_is_checked(kernel):
    kernel.run("""
from d2lmgpu.course.exercises.checking import check
def combine(means, sizes):
    import helper, queue, random
    total = sum(mean * size for mean, size in zip(means, sizes) if size > 0)
    return total / sum(sizes)
""")
    assert kernel.run("print(bool(check('combine', combine)))") == "True\n"


def test_the_lab_runs(kernel):
    kernel.run(f"""{CELL}
from types import SimpleNamespace
from d2lmgpu.lab.pool import POOL
from d2lmgpu.lab.runner import Runner
def train(num_gpus, batch_size, lr):
    assert worker() == ("42", True)
    return SimpleNamespace(num_samples=1, accuracies=[1.0], seconds=[1])
outcomes = []
runner = Runner(on_end=outcomes.append)
runner.start(train, (), num_gpus=1, batch_size=8, lr=0.1)
assert runner.wait(60)
POOL.end_spare()
""")
    assert kernel.run("print(outcomes[0].status, outcomes[0].message)").startswith("finished")


@pytest.mark.parametrize("command", sample(1, ["check", "explain"]))
def test_a_script_is_watched(tmp_path, folder, command):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "d2lmgpu", command, "--json", "--", tmp_path / "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout), done.stderr
    assert "supervisor" not in done.stdout
