"""chapters/memory/train_fsdp.py, started by torchrun: whoever saves, and whoever goes on.

The oracle of its losses is a loop in one process, without FSDP; that of a training that was saved,
killed or gone on with by other ranks is the undisturbed one.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from soaking import sample
from torch.nn import functional as F

FOLDER = Path(__file__).parents[2] / "chapters" / "memory"
SETTINGS = ["--width=16", "--tokens=12", "--batch-size=8", "--steps=6", "--save-every=2"]
ENVIRON = os.environ | {
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "PYTHONPATH": str(FOLDER),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("All happy families are alike; each unhappy family is so in its own way. " * 9)
    return file


@pytest.fixture
def train_fsdp(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("train_fsdp")


def torchrun(text, *options, ranks, script=FOLDER / "train_fsdp.py", cwd=None):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", script, f"--text={text}", *SETTINGS, *options]
    command = [str(word) for word in command]
    return subprocess.run(
        command, env=ENVIRON, cwd=cwd, text=True, capture_output=True, timeout=300
    )


def losses(done):
    """Step -> loss, of what rank 0 has printed."""
    assert done.returncode == 0, done.stderr
    return {
        int(step): float(loss) for step, loss in re.findall(r"step (\d+): loss (\S+)", done.stdout)
    }


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory):
    """The losses of two ranks, and where they have saved.

    The script stands alone: it is copied to a folder in which the course cannot be imported.
    """
    alone, folder = tmp_path_factory.mktemp("alone"), tmp_path_factory.mktemp("undisturbed")
    script = shutil.copy(FOLDER / "train_fsdp.py", alone)
    (alone / "d2lmgpu.py").write_text("raise ImportError('the course is not here')")
    options = f"--checkpoints={folder}"
    return losses(torchrun(text, options, ranks=2, script=script, cwd=alone)), folder


@pytest.fixture(scope="module")
def four(text, tmp_path_factory):
    """The losses of four ranks in two groups, which stop after four steps, and their folder."""
    folder = tmp_path_factory.mktemp("four")
    options = f"--checkpoints={folder}", "--steps=4", "--replicas=2"
    return losses(torchrun(text, *options, ranks=4)), folder


def one_process(train_fsdp, text):
    args = train_fsdp.parse_args([f"--text={text}", *SETTINGS])
    data = torch.frombuffer(bytearray(text.read_bytes()), dtype=torch.uint8)
    torch.manual_seed(args.seed)
    net = train_fsdp.GPT(args)
    net.fill_positions()
    optimizer = torch.optim.AdamW(net.parameters(), args.lr)
    loss_of = {}
    for step in range(1, args.steps + 1):
        draw = torch.Generator().manual_seed(step)
        starts = torch.randint(len(data) - args.tokens, (args.batch_size,), generator=draw)
        rows = torch.stack([data[i : i + args.tokens + 1] for i in starts]).long()
        loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        loss_of[step] = loss.item()
    return loss_of


def test_it_trains_as_one_process_does(train_fsdp, text, undisturbed):
    assert undisturbed[0] == pytest.approx(one_process(train_fsdp, text), abs=2e-5)


OPTIONS = {
    "two groups that shard": (["--replicas=2"], 2e-5),
    "recomputed": (["--recompute"], 2e-5),
    "in 16 bits": (["--bf16"], 0.05),
    "compiled": (["--compile", "--recompute"], 2e-5),  # a C++ compiler, most of a minute
}


@pytest.mark.parametrize("how", sample(2, OPTIONS))
def test_its_options_change_no_loss(how, text, undisturbed):
    options, within = OPTIONS[how]
    curve = losses(torchrun(text, *options, ranks=4 if "groups" in how else 2))
    assert curve == pytest.approx(undisturbed[0], abs=within)
    assert ("16 bits" in how) == (max(abs(curve[i] - undisturbed[0][i]) for i in curve) > 2e-5)


@pytest.mark.parametrize("ranks", [1, 2])
def test_four_ranks_save_and_others_go_on(ranks, text, four, undisturbed, tmp_path):
    first, folder = four
    shutil.copytree(folder, tmp_path / "copy")
    rest = losses(torchrun(text, f"--checkpoints={tmp_path / 'copy'}", ranks=ranks))
    assert (sorted(first), sorted(rest)) == ([1, 2, 3, 4], [5, 6])
    assert first | rest == pytest.approx(undisturbed[0], abs=2e-5)


def test_two_checkpoints_are_kept_and_the_newest_whole_one_is_read(undisturbed, train_fsdp):
    folder = undisturbed[1]
    names = [path.name for path in train_fsdp.whole_ones(folder)]
    assert names == ["step-00000004", "step-00000006"]
    assert sorted(path.name for path in folder.iterdir()) == names


KILLED = """
    import os, signal
    import train_fsdp
    from torch.distributed.checkpoint.filesystem import FileSystemWriter

    finish = FileSystemWriter.finish

    def killed(self, **arguments):
        if str(self.path).endswith("step-00000004"):
            for pid in os.getppid(), os.getpid():  # torchrun, and rank 0; rank 1 then fails
                os.kill(pid, signal.SIGKILL)
        finish(self, **arguments)

    FileSystemWriter.finish = killed
    train_fsdp.main()
"""


def test_killed_while_it_saves_it_goes_on_from_the_last_whole_one(text, undisturbed, tmp_path):
    script, folder = tmp_path / "killed.py", tmp_path / "saved"
    script.write_text(textwrap.dedent(KILLED))
    done = torchrun(text, f"--checkpoints={folder}", ranks=2, script=script)
    assert done.returncode == -9, done.stderr
    written = sorted(file.parent.name for file in folder.glob("*/*.distcp"))
    assert written == 2 * ["step-00000002"] + 2 * ["step-00000004"]
    assert [file.parent.name for file in folder.glob("*/.metadata")] == ["step-00000002"]
    rest = losses(torchrun(text, f"--checkpoints={folder}", ranks=2))
    assert sorted(rest) == [3, 4, 5, 6]
    assert all(rest[step] == undisturbed[0][step] for step in rest)  # to the digit


def test_the_table_of_positions_is_made_again(text, undisturbed, tmp_path):
    """What ``to_empty`` leaves in it is whatever the memory held."""
    script = tmp_path / "forgotten.py"
    script.write_text(
        "import train_fsdp\n"
        "train_fsdp.GPT.fill_positions = lambda self: self.positions.fill_(9.0)\n"
        "train_fsdp.main()\n"
    )
    curve = losses(torchrun(text, ranks=2, script=script))
    assert abs(curve[6] - undisturbed[0][6]) > 1e-3


@pytest.mark.parametrize("option, ranks", [("--batch-size=7", 2), ("--replicas=2", 3)])
def test_numbers_that_ranks_do_not_divide_are_refused(option, ranks, train_fsdp, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    monkeypatch.setattr(
        sys, "argv", ["train_fsdp.py", "--text=book.txt", "--batch-size=12", option]
    )
    with pytest.raises(SystemExit, match=f"{ranks} ranks divide"):
        train_fsdp.main()
