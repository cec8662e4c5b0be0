"""chapters/concise/train_ddp.py, started by torchrun, computes what one process computes.

The oracle is a loop in one process, without DDP, loader or sampler. A killed run that goes on from
its checkpoint ends, bit for bit, where the undisturbed one does, wherever it was killed. All this
holds of train_ddp_overnight.py, too, whose checkpoints outlive more.
"""

import importlib
import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import nbformat
import pytest
import torch
from soaking import sample
from torch.nn import functional as F

from d2lmgpu.data.datasets import fashion_mnist
from d2lmgpu.torch import lenet

FOLDER = Path(__file__).parents[2] / "chapters" / "concise"
BATCH, LR, CLIP, EPOCHS, TEST = 12, 0.05, 0.2, 2, 31
SETTINGS = [
    "--data",
    f"--batch-size={BATCH}",
    f"--lr={LR}",
    f"--clip={CLIP}",
    f"--epochs={EPOCHS}",
    f"--num-test={TEST}",
    "--device=cpu",
    "--seed=3",
]
ENVIRON = os.environ | {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "PYTHONPATH": str(FOLDER),
}


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    """Fashion-MNIST's four files with its first images, where the script looks for them."""
    folder = tmp_path_factory.mktemp("data")
    fashion_mnist(60, TEST).save(folder)
    SETTINGS[0] = f"--data={folder}"
    return folder


def torchrun(script, *options, processes, restarts=0, python=sys.executable, path=FOLDER):
    """The finished process; its output is what rank 0 printed, line by line."""
    environ = ENVIRON | {"PYTHONPATH": str(path)}
    if restarts:  # else torchrun's own store serves, whose port nobody can take before rank 0
        environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    command = [
        python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={processes}",
        f"--max-restarts={restarts}",
    ]
    command += map(str, [script, *SETTINGS, *options])
    return subprocess.run(command, env=environ, text=True, capture_output=True, timeout=300)


def vector(state):
    return torch.cat([value.flatten() for value in state.values()])


def weights(folder):
    """Of the newest checkpoint, which is that after the last epoch."""
    file = max(folder.iterdir())
    assert file.name in ("checkpoint.pt", f"epoch-{EPOCHS:05}.pt")
    state = torch.load(file, weights_only=True)
    assert state["epochs_done"] == EPOCHS
    return state["net"]


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
        total, batches = 0.0, order[: num_train // BATCH * BATCH].split(BATCH)
        for rows in batches:
            params = [p.requires_grad_() for p in params]
            loss = F.cross_entropy(lenet(X[rows], for_lenet(params)), y[rows])
            grads = torch.autograd.grad(loss, params)
            total += loss.item()
            norm = torch.sqrt(sum((g**2).sum() for g in grads))
            velocity = [0.9 * v + g * min(1, CLIP / norm) for v, g in zip(velocity, grads)]
            params = [(p - LR * v).detach() for p, v in zip(params, velocity)]
        outputs = lenet(torch.from_numpy(data.X_test), for_lenet(params))
        accuracy = (outputs.argmax(1) == torch.from_numpy(data.y_test)).double().mean().item()
        lines.append((total / len(batches), accuracy))
    return torch.cat([p.flatten() for p in params]), lines


def for_lenet(params):
    """The parameters of the script's layers as the package's ``lenet`` takes them."""
    return [p.T if p.ndim == 2 else p for p in params]


@pytest.mark.parametrize(
    "name, processes, num_train",
    sample(
        2,
        [
            ("train_ddp.py", 3, 59),
            ("train_ddp_overnight.py", 2, 49),
            ("train_ddp.py", 1, 49),
            ("train_ddp.py", 2, 49),
            ("train_ddp_overnight.py", 3, 59),
        ],
    ),
)
def test_any_number_of_processes_is_one_process(name, processes, num_train, tmp_path):
    """What is left out is what one process leaves out: with 59 = 4·12 + 11 images, those 11.

    Three ranks filled up to 20 images each would have a fifth batch, with a copy in it.
    """
    done = torchrun(
        FOLDER / name, f"--num-train={num_train}", f"--checkpoints={tmp_path}", processes=processes
    )
    assert done.returncode == 0, done.stderr
    expected, lines = one_process(num_train)
    ours = vector(weights(tmp_path))
    assert (ours - expected).norm() < 1e-5 * expected.norm()
    shown = [line.replace(",", "").split() for line in done.stdout.splitlines()]
    assert [words[:2] for words in shown] == [["epoch", "1:"], ["epoch", "2:"]]
    for words, (loss, accuracy) in zip(shown, lines, strict=True):
        assert abs(float(words[3]) - loss) < 1e-3 and float(words[6]) == round(accuracy, 3)


@pytest.mark.parametrize("size, num_train", [(7, 49), (60, 59)])
def test_a_batch_that_the_ranks_cannot_share_is_an_error(size, num_train, train_ddp):
    args = train_ddp.make_parser().parse_args([f"--batch-size={size}"])
    with pytest.raises(SystemExit, match=f"-size: give a multiple of 2, at most {num_train}"):
        train_ddp.make_loader(range(num_train), args, 0, 2)


NOISE = {"train_ddp": ["--num-train=49", "--dropout=0.3"]}
NOISE["train_ddp_overnight"] = [*NOISE["train_ddp"], "--augment"]

UPDATE = """
    class Deadly(train_ddp.TensorDataset):
        seen = 0
        def __getitem__(self, i):
            Deadly.seen += 1
            if Deadly.seen == 60:
                die(rank=1, before=leave_a_damaged_one)
            return super().__getitem__(i)
    train_ddp.TensorDataset = Deadly
    """
WRITES = """
    def half(file, *name):
        die(rank=0, before=lambda: os.truncate(file, os.stat(file).st_size // 2))
        whole(file, *name)
    """
DEATHS = {
    ("train_ddp", "rank 1 in an update of epoch 2"): UPDATE,
    ("train_ddp_overnight", "rank 1 in an update of epoch 2"): UPDATE,
    ("train_ddp", "rank 0 while it writes the first checkpoint"): WRITES
    + "whole, os.replace = os.replace, half",
    ("train_ddp_overnight", "rank 0 while it writes the first checkpoint"): WRITES
    + "whole, os.fsync = os.fsync, half",
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
        options, _ = train_ddp.make_parser().parse_known_args()
        for first in Path(options.checkpoints).glob("epoch-*.pt"):
            data = bytearray(first.read_bytes())
            data[len(data) // 2] ^= 1
            first.with_name("epoch-00002.pt").write_bytes(data)
    """
ENDS = {
    "train_ddp": "train_ddp.main()",
    "train_ddp_overnight": """
        import train_ddp_overnight
        if os.environ["RANK"] != "0":  # what it reads may not be what rank 0 reads
            train_ddp_overnight.newest = None
        train_ddp_overnight.night()
        """,
}


def dying(name, death):
    """The script that dies so in its first life."""
    return "\n".join(textwrap.dedent(lines) for lines in (CRASH, DEATHS[name, death], ENDS[name]))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights and the output of each script's undisturbed run."""
    by_script = {}
    for name, options in NOISE.items():
        folder = tmp_path_factory.mktemp(name)
        script = FOLDER / f"{name}.py"
        done = torchrun(script, *options, f"--checkpoints={folder}", processes=2)
        assert done.returncode == 0, done.stderr
        by_script[name] = weights(folder), done.stdout
    return by_script


@pytest.mark.parametrize("name, death", sample(2, DEATHS))
def test_killed_and_resumed_is_the_undisturbed_run_bit_for_bit(name, death, undisturbed, tmp_path):
    crash, folder = tmp_path / "crash.py", tmp_path / "saved"
    crash.write_text(dying(name, death))
    done = torchrun(crash, *NOISE[name], f"--checkpoints={folder}", processes=2, restarts=1)
    assert done.returncode == 0, done.stderr
    assert "exitcode: -9" in done.stderr, "it was not killed"
    ours, (expected, output) = weights(folder), undisturbed[name]
    assert ours.keys() == expected.keys()
    assert all(torch.equal(ours[key], expected[key]) for key in expected)
    # What was shown by the end is what the undisturbed run showed; nothing was trained twice
    # but the epoch whose checkpoint was not written.
    first, second = output.splitlines()
    between = [first] if "checkpoint" in death else []
    if name == "train_ddp_overnight" and not between:
        between = ["goes on after epoch 1 of 2"]
    assert done.stdout.splitlines() == [first, *between, second]
    # A damaged one is refused by its name, once, and the one before it is used.
    refused = re.findall(r"(epoch-\d+)\.pt is damaged; the one before it is used", done.stderr)
    has_damaged = name == "train_ddp_overnight" and "checkpoint" not in death
    assert refused == ["epoch-00002"] * has_damaged, done.stderr


@pytest.mark.soak
def test_the_command_for_the_night_survives_a_killed_process(data, tmp_path):
    """As the page has it, with two ranks on CPU cores and a training of two short epochs."""
    page = nbformat.read(FOLDER / "torchrun.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    (command,) = re.findall(r"```bash\n(export .*?)```", text, flags=re.DOTALL)
    crash = tmp_path / "crash.py"
    crash.write_text(dying("train_ddp_overnight", "rank 1 in an update of epoch 2"))
    small = f"--epochs 2 --batch-size {BATCH}"  # it dies in a later batch
    changes = {"=gpu": "=2", "train_ddp_overnight.py": str(crash), "FashionMNIST/raw": str(data)}
    changes |= {"60000": "49", "10000": str(TEST), "--epochs 20": small}
    for in_text, tried in changes.items():
        assert in_text in command
        command = command.replace(in_text, tried)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = ENVIRON | {"PATH": path, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run(["bash", "-c", command + "wait"], cwd=tmp_path, env=environ, timeout=300)
    log = (tmp_path / "run.log").read_text()
    assert "exitcode: -9" in log, log
    shown = [line.split(":")[1] for line in log.splitlines() if line.startswith("[")]
    assert [line for line in shown if line.startswith(("epoch", "goes"))] == [
        "epoch 1",
        "goes on after epoch 1 of 2",
        "epoch 2",
    ], log
    lives = [log.parts[-3:] for log in (tmp_path / "logs").rglob("stdout.log")]
    assert sorted(lives) == [
        (f"attempt_{life}", f"{rank}", "stdout.log") for life in range(2) for rank in range(2)
    ]


@pytest.fixture
def train_ddp(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("train_ddp")


@pytest.fixture
def overnight(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("train_ddp_overnight")


@pytest.mark.parametrize(
    "option",
    [
        "--lr=0.1",
        "--batch-size=6",
        "--seed=4",
        "--num-train=50",
        "--clip=1",
        "--dropout=0.1",
        "--augment",
    ],
)
def test_a_checkpoint_goes_on_with_its_own_settings_only(option, overnight, tmp_path, monkeypatch):
    parse, begun = overnight.night_parser().parse_args, [*SETTINGS, "--num-train=49"]
    begun.append(f"--checkpoints={tmp_path}")
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), LR)
    monkeypatch.setattr(overnight.dist, "get_rank", lambda: 0)
    monkeypatch.setattr(overnight.dist, "broadcast_object_list", lambda objects: None)
    overnight.save_durably(parse(begun), net, optimizer, 2)
    longer = parse([*begun, "--epochs=9", "--num-test=5", "--workers=1"])
    assert overnight.resume_checked(longer, net, optimizer) == 2
    name = option.strip("-").split("=")[0].replace("-", "_")
    with pytest.raises(SystemExit, match=rf"begun with {name}=\S+\. Give the same, or another"):
        overnight.resume_checked(parse([*begun, option]), net, optimizer)


def saved(overnight, folder, *epochs):
    net = torch.nn.Linear(100, 100)
    args = overnight.night_parser().parse_args([f"--checkpoints={folder}"])
    for epoch in epochs:
        overnight.save_durably(args, net, torch.optim.SGD(net.parameters(), LR), epoch)
    return sorted(path.name for path in folder.glob("*"))


def test_a_checkpoint_that_cannot_be_written_is_told_and_ends_nothing(overnight, tmp_path, capsys):
    (tmp_path / "file").touch()
    saved(overnight, tmp_path / "file", 2)
    assert "epoch-00002.pt was not saved: " in capsys.readouterr().err


def test_a_full_disk_is_told_and_the_checkpoint_before_it_stays(overnight, tmp_path, capsys):
    saved(overnight, tmp_path, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        saved(overnight, tmp_path, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "epoch-00002.pt was not saved: " in capsys.readouterr().err
    assert overnight.newest(tmp_path) == f"{tmp_path}/epoch-00001.pt"


def test_two_checkpoints_are_kept(overnight, tmp_path):
    assert saved(overnight, tmp_path, 1, 2, 3, 10) == ["epoch-00003.pt", "epoch-00010.pt"]
    assert overnight.newest(tmp_path) == f"{tmp_path}/epoch-00010.pt"


DAMAGES = {
    "a bit": lambda data: data[:20_000] + bytes([data[20_000] ^ 1]) + data[20_001:],
    "the half": lambda data: data[: len(data) // 2],
    "all": lambda data: b"",
    "another file": lambda data: b"not a checkpoint" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_not_used(damage, overnight, tmp_path, capsys):
    assert overnight.newest(tmp_path) is overnight.newest(tmp_path / "none") is None
    saved(overnight, tmp_path, 1, 2)
    for left in ("epoch-00001.pt", None):
        newest = Path(overnight.newest(tmp_path))
        newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
        if left:
            assert overnight.newest(tmp_path) == f"{tmp_path}/{left}"
            assert "epoch-00002.pt is damaged" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"No checkpoint in .* is whole"):
        overnight.newest(tmp_path)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--data=nowhere"], "nowhere/train-images-idx3-ubyte.gz is not there."),
        (["--num-train=61"], "61 images of train were asked for, there are 60."),
        (["--num-test=32"], "32 images of t10k were asked for, there are 31."),
    ],
)
def test_data_that_is_not_there_is_an_error(options, message, overnight, monkeypatch):
    words = ["train_ddp_overnight.py", *SETTINGS, "--num-train=60", *options]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit, match=f"^{re.escape(message)}"):
        overnight.night()


def test_the_data_are_those_of_the_course(train_ddp, data):
    X, y = train_ddp.fashion_mnist(data, "train", 49).tensors
    ours = fashion_mnist(49, 1)
    assert X.numpy().dtype == ours.X_train.dtype and y.numpy().dtype == ours.y_train.dtype
    assert (ours.X_train == X.numpy()).all() and (ours.y_train == y.numpy()).all()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A Python that has our libraries, PyTorch among them, but not the course."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, symlinks=True)
    libraries = Path(torch.__file__).parents[1]  # as a path: .pth files in it are not read
    python = folder / "bin" / "python"
    for name, code in (("torch", 0), ("d2lmgpu", 1)):
        imported = subprocess.run(
            [python, "-c", f"import {name}"],
            env=ENVIRON | {"PYTHONPATH": str(libraries)},
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert imported.returncode == code, imported.stderr
    return {"python": python, "path": libraries}


@pytest.mark.parametrize(
    "names, saved",
    [
        (["train_ddp.py"], "checkpoint.pt"),
        (["train_ddp_overnight.py", "train_ddp.py"], "epoch-00001.pt"),
    ],
)
def test_the_scripts_stand_alone(names, saved, elsewhere, tmp_path):
    for name in names:
        shutil.copy(FOLDER / name, tmp_path)
    done = torchrun(
        tmp_path / names[0],
        "--num-train=12",
        "--epochs=1",
        "--checkpoints",
        tmp_path,
        processes=2,
        **elsewhere,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epoch 1: ") and (tmp_path / saved).exists()


def test_the_first_script_is_short_and_imports_pytorch_alone():
    lines = (FOLDER / "train_ddp.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 120
    imports = {line.split()[1].split(".")[0] for line in lines if re.match(r"(import|from) ", line)}
    assert imports - set(sys.stdlib_module_names) == {"torch"}


@pytest.mark.parametrize("option, setting", [([], None), (["--deterministic"], ":4096:8")])
def test_deterministic_sets_what_cublas_asks_for(option, setting, overnight, monkeypatch):
    name, settings = "CUBLAS_WORKSPACE_CONFIG", []
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)  # and what the script sets is taken back
    words = ["train_ddp_overnight.py", *SETTINGS, "--num-train=12", *option]
    monkeypatch.setattr(sys, "argv", words)
    for does in ("init_process_group", "barrier", "destroy_process_group"):
        monkeypatch.setattr(overnight.dist, does, lambda *_: None)

    def train(*_):
        exact = torch.are_deterministic_algorithms_enabled()
        settings.append((os.environ.get(name), exact))

    monkeypatch.setattr(overnight, "train", train)
    try:
        overnight.night()
    finally:
        torch.use_deterministic_algorithms(False)
    assert settings == [(setting, bool(option))]
