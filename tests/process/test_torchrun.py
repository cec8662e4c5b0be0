"""chapters/concise/train_ddp.py, started by torchrun, computes what one process computes.

The oracle is a loop in one process, without DDP, loader or sampler. A killed run that goes on from
its checkpoint ends, bit for bit, where the undisturbed one does, wherever it was killed.
"""

import importlib
import math
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from d2lmgpu.data.datasets import fashion_mnist
from d2lmgpu.torch import lenet

FOLDER = Path(__file__).parents[2] / "chapters" / "concise"
BATCH, LR, CLIP, EPOCHS, TEST = 12, 0.05, 0.2, 2, 31
SETTINGS = [f"--batch-size={BATCH}", f"--lr={LR}", f"--clip={CLIP}", f"--epochs={EPOCHS}",
            f"--num-test={TEST}", "--device=cpu", "--seed=3"]  # fmt: skip
ENVIRON = os.environ | {
    "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(FOLDER),
}  # fmt: skip


def torchrun(script, *options, processes, restarts=0):
    """The finished process; its output is what rank 0 printed, line by line."""
    environ = ENVIRON | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
               f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]  # fmt: skip
    command += map(str, [script, *SETTINGS, *options])
    return subprocess.run(command, env=environ, text=True, capture_output=True, timeout=300)


def vector(state):
    return torch.cat([value.flatten() for value in state.values()])


def weights(folder, num_train=49):
    """Of the newest checkpoint, which is that after the last update, in the network's order."""
    file = max(folder.iterdir())
    assert file.name.startswith(f"step-{EPOCHS * math.ceil(num_train / BATCH):08}-")
    saved = {name: value for name, value in load_file(file).items() if name.startswith("/net/")}

    def place(name):
        layer, kind = name.removeprefix("/net/").split(".")
        return int(layer), kind == "bias"

    return {name: saved[name] for name in sorted(saved, key=place)}


def one_process(num_train):
    """The weights, by the names that the script's network has, and its output."""
    torch.manual_seed(3)
    shapes = [(20, 1, 3, 3), (50, 20, 5, 5), (128, 800), (10, 128)]
    params = []
    for shape in shapes:  # as nn.Conv2d and nn.Linear draw them
        w = torch.empty(shape)
        torch.nn.init.kaiming_uniform_(w, a=5**0.5)
        bound = w[0].numel() ** -0.5
        params += [w, torch.empty(shape[0]).uniform_(-bound, bound)]
    data = fashion_mnist(num_train, TEST)
    X, y = torch.from_numpy(data.X_train), torch.from_numpy(data.y_train)
    velocity, lines = [0] * len(params), []
    for epoch in range(EPOCHS):
        order = torch.randperm(num_train, generator=torch.Generator().manual_seed(3 + epoch))
        total = 0.0
        for rows in order.split(BATCH):
            params = [p.requires_grad_() for p in params]
            loss = F.cross_entropy(lenet(X[rows], for_lenet(params)), y[rows])
            grads = torch.autograd.grad(loss, params)
            total += loss.item() * len(rows)
            norm = torch.sqrt(sum((g**2).sum() for g in grads))
            velocity = [0.9 * v + g * min(1, CLIP / norm) for v, g in zip(velocity, grads)]
            params = [(p - LR * v).detach() for p, v in zip(params, velocity)]
        outputs = lenet(torch.from_numpy(data.X_test), for_lenet(params))
        accuracy = (outputs.argmax(1) == torch.from_numpy(data.y_test)).double().mean().item()
        lines.append((total / num_train, accuracy))
    return torch.cat([p.flatten() for p in params]), lines


def for_lenet(params):
    """The parameters of the script's layers as the package's ``lenet`` takes them."""
    return [p.T if p.ndim == 2 else p for p in params]


@pytest.mark.parametrize(
    "processes, num_train",
    [(3, 49), *(pytest.param(*of, marks=pytest.mark.soak) for of in ((1, 49), (2, 49), (3, 50)))],
)
def test_any_number_of_processes_is_one_process(processes, num_train, tmp_path):
    """49 = 4·12 + 1: the last batch has an image for one rank, copies for the others."""
    done = torchrun(FOLDER / "train_ddp.py", f"--num-train={num_train}",
                    f"--checkpoints={tmp_path}", processes=processes)  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected, lines = one_process(num_train)
    found = vector(weights(tmp_path, num_train))
    assert (found - expected).norm() < 1e-5 * expected.norm()
    shown = [line.replace(",", "").split() for line in done.stdout.splitlines()]
    assert [words[:2] for words in shown] == [["epoch", "1:"], ["epoch", "2:"]]
    for words, (loss, accuracy) in zip(shown, lines, strict=True):
        assert abs(float(words[3]) - loss) < 1e-3 and float(words[6]) == round(accuracy, 3)


def test_a_batch_that_the_ranks_cannot_share_is_an_error(tmp_path):
    done = torchrun(FOLDER / "train_ddp.py", "--batch-size=7", processes=2)
    assert done.returncode != 0 and "--batch-size 7: give a multiple of 2." in done.stderr


NOISE = ["--num-train=49", "--dropout=0.3", "--augment"]

DEATHS = {
    "rank 1 in an update of epoch 2": """
        class Images(train_ddp.Images):
            seen = 0
            def __getitem__(self, i):
                Images.seen += 1
                if Images.seen == 60:
                    die(rank=1, before=leave_a_damaged_one)
                return super().__getitem__(i)
        train_ddp.Images = Images
        """,
    "rank 0 while it writes the first checkpoint": """
        def half(file):
            die(rank=0, before=lambda: os.ftruncate(file, os.fstat(file).st_size // 2))
            whole(file)
        whole, os.fsync = os.fsync, half
        """,
}
CRASH = """
    import os, signal
    from pathlib import Path
    import train_ddp

    def die(rank, before):
        first_life = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if first_life and os.environ["RANK"] == str(rank):
            before()
            os.kill(os.getpid(), signal.SIGKILL)

    def leave_a_damaged_one():
        (first,) = Path(train_ddp.parse_args().checkpoints).iterdir()
        data = bytearray(first.read_bytes())
        data[-1] ^= 1
        later = int(first.name[5:13]) + 1
        first.with_name(f"step-{later:08}{first.name[13:]}").write_bytes(data)

    if os.environ["RANK"] != "0":  # what it reads may not be what rank 0 reads
        train_ddp.checkpoints.newest = None
    """


def dying(death):
    """The script that dies so in its first life."""
    lines = [CRASH, DEATHS[death], "    train_ddp.main()"]
    return "\n".join(textwrap.dedent(line) for line in lines)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    done = torchrun(FOLDER / "train_ddp.py", *NOISE, f"--checkpoints={folder}", processes=2)
    assert done.returncode == 0, done.stderr
    return weights(folder), done.stdout


@pytest.mark.parametrize("death", DEATHS)
def test_killed_and_resumed_is_the_undisturbed_run_bit_for_bit(death, undisturbed, tmp_path):
    crash, folder = tmp_path / "crash.py", tmp_path / "saved"
    crash.write_text(dying(death))
    done = torchrun(crash, *NOISE, f"--checkpoints={folder}", processes=2, restarts=1)
    assert done.returncode == 0, done.stderr
    assert "exitcode: -9" in done.stderr, "it was not killed"
    found, (expected, output) = weights(folder), undisturbed
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    # What was shown by the end is what the undisturbed run showed; nothing was trained twice
    # but the epoch whose checkpoint was not written.
    first, second = output.splitlines()
    between = first if "checkpoint" in death else "goes on after epoch 1 of 2"
    assert done.stdout.splitlines() == [first, between, second]
    # A damaged one is refused by its name, once, and the one before it is used.
    refused = re.findall(r"(step-\d{8})\S* is damaged.*; (step-\d{8})\S* is used", done.stderr)
    damaged = [] if "checkpoint" in death else [("step-00000006", "step-00000005")]
    assert refused == damaged, done.stderr


def test_the_command_for_the_night_survives_a_killed_process(tmp_path):
    """As the page has it, with two ranks on CPU cores and a training of two short epochs."""
    page = nbformat.read(FOLDER / "torchrun.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    (command,) = re.findall(r"```bash\n(export .*?)```", text, flags=re.DOTALL)
    crash = tmp_path / "crash.py"
    crash.write_text(dying("rank 1 in an update of epoch 2"))
    for told, tried in {"=gpu": "=2", "train_ddp.py": str(crash), "60000": "49",
                        "10000": str(TEST),  # and batches so small that it dies in a later one
                        "--epochs 20": f"--epochs 2 --batch-size {BATCH}"}.items():  # fmt: skip
        assert told in command
        command = command.replace(told, tried)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = ENVIRON | {"PATH": path, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run(["bash", "-c", command + "wait"], cwd=tmp_path, env=environ, timeout=300)
    log = (tmp_path / "run.log").read_text()
    assert "exitcode: -9" in log, log
    shown = [line.split(":")[1] for line in log.splitlines() if line.startswith("[")]
    assert [line for line in shown if line.startswith(("epoch", "goes"))] == [
        "epoch 1", "goes on after epoch 1 of 2", "epoch 2",
    ], log  # fmt: skip
    lives = [log.parts[-3:] for log in (tmp_path / "logs").rglob("stdout.log")]
    assert sorted(lives) == [
        (f"attempt_{life}", f"{rank}", "stdout.log") for life in range(2) for rank in range(2)
    ]


@pytest.fixture
def train_ddp(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("train_ddp")


@pytest.mark.parametrize(
    "option",
    ["--lr=0.1", "--batch-size=6", "--seed=4", "--num-train=50", "--clip=1", "--dropout=0.1",
     "--augment"],
)  # fmt: skip
def test_a_checkpoint_goes_on_with_its_own_settings_only(option, train_ddp, tmp_path):
    begun = [*SETTINGS, "--num-train=49", f"--checkpoints={tmp_path}"]
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), LR)
    train_ddp.save(train_ddp.parse_args(begun), net, optimizer, 10, 2)
    found = train_ddp.checkpoints.newest(tmp_path, net)
    longer = train_ddp.parse_args([*begun, "--epochs=9", "--num-test=5", "--workers=1"])
    assert train_ddp.resume(longer, found, net, optimizer) == 2
    name = option.strip("-").split("=")[0].replace("-", "_")
    with pytest.raises(SystemExit, match=rf"begun with {name}=\S+\. Give the same, or another"):
        train_ddp.resume(train_ddp.parse_args([*begun, option]), found, net, optimizer)


def test_a_checkpoint_that_cannot_be_written_is_told_and_ends_nothing(train_ddp, tmp_path, capsys):
    (tmp_path / "file").touch()
    net = torch.nn.Linear(1, 1)
    args = train_ddp.parse_args([f"--checkpoints={tmp_path / 'file'}"])
    train_ddp.save(args, net, torch.optim.SGD(net.parameters(), LR), 10, 2)
    assert capsys.readouterr().err.startswith("Step 10 was not saved in ")


@pytest.mark.parametrize("option, setting", [([], None), (["--deterministic"], ":4096:8")])
def test_deterministic_sets_what_cublas_asks_for(option, setting, train_ddp, monkeypatch):
    name, found = "CUBLAS_WORKSPACE_CONFIG", []
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)  # and what the script sets is taken back
    monkeypatch.setattr(sys, "argv", ["train_ddp.py", "--device=cpu", *option])
    monkeypatch.setattr(train_ddp.dist, "init_process_group", lambda backend: None)
    monkeypatch.setattr(train_ddp.dist, "barrier", lambda: None)
    monkeypatch.setattr(train_ddp.dist, "destroy_process_group", lambda: None)
    monkeypatch.setattr(train_ddp, "train", lambda *_: found.append(os.environ.get(name)))
    train_ddp.main()
    assert found == [setting]
