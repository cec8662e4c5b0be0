"""The Makefile on machines whose temporary folder cannot be used, and two commands at once.

Each machine is a mount namespace of its own. What the tests need and a machine lacks is in
tests/lacking.py; the set-up on machines without a program, in test_setup.py.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOW = 'SHELL=/bin/bash\nall: ; @$(MAKE) $(JOBS) show\nshow: ; @echo "TMPDIR is $$TMPDIR"\n'
TMP = {"read-only": "ro", "without room": "nr_inodes=1", "where nothing runs": "noexec"}


def shown(prefix, environ, tmp_path):
    """The folder of temporary files, as `make` with two jobs tells it to them."""
    text = (ROOT / "Makefile").read_text().split("# The suite sees nothing else")[0]
    (tmp_path / "Makefile").write_text(text + SHOW)
    done = subprocess.run(
        [*prefix, "make", "--silent", "all"],
        cwd=tmp_path,
        env={name: text for name, text in os.environ.items() if name != "TMPDIR"} | environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.mark.needs("root")
@pytest.mark.parametrize("places", ["/tmp", "/tmp /var/tmp"])
@pytest.mark.parametrize("tmp", TMP)
def test_where_tmp_cannot_be_used_temporary_files_are_elsewhere(tmp, places):
    mount = f'for place in {places}; do mount -t tmpfs -o "$0" tmpfs $place; done && exec "$@"'
    folder = ROOT / ".cache" / "machines"  # a folder under /tmp would be hidden
    folder.mkdir(parents=True, exist_ok=True)
    elsewhere = shown(["unshare", "--mount", "sh", "-c", mount, TMP[tmp]], {}, folder)
    assert elsewhere == ("/var/tmp" if places == "/tmp" else str(folder / ".cache" / "tmp"))


@pytest.mark.parametrize("name", ["/nonexistent", "/proc", "/dev/null"])
def test_a_tmpdir_that_cannot_be_used_is_replaced(name, tmp_path):
    assert shown([], {"TMPDIR": name}, tmp_path) == "/var/tmp"


def test_one_that_can_be_used_stays(tmp_path):
    assert shown([], {"TMPDIR": str(tmp_path)}, tmp_path) == str(tmp_path)
    assert shown([], {}, tmp_path) == ("is" if runs_in("/tmp") else "/var/tmp")


def runs_in(folder):
    """Whether a file can be made there, and executed."""
    try:
        with tempfile.TemporaryDirectory(dir=folder) as made:
            program = Path(made, "program")
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
            return not subprocess.run([program]).returncode
    except OSError:
        return False


HOLD = "import sys; print('at work', flush=True); sys.stdin.read()"


@pytest.fixture
def alone(tmp_path):
    """tools/folder_lock.py in a folder of its own, as a command."""
    (tmp_path / "tools").mkdir()
    program = tmp_path / "tools" / "folder_lock.py"
    program.write_text((ROOT / "tools" / "folder_lock.py").read_text())
    return [sys.executable, str(program)]


def test_a_second_one_is_refused_and_told_of_the_first(alone):
    first = subprocess.Popen(
        [*alone, "make book", sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout.readline() == "at work\n"
        second = subprocess.run([*alone, "make test", "true"], capture_output=True, text=True)
        assert second.returncode == 1
        assert second.stderr == (
            f"make test: make book (process {first.pid}) is at work in this folder. "
            "Wait for its end, or interrupt it.\n"
        )
    assert subprocess.run([*alone, "make test", "true"]).returncode == 0


@pytest.mark.parametrize("status", [0, 1, 130])
def test_the_status_is_that_of_the_command(alone, status):
    assert subprocess.run([*alone, "make book", "sh", "-c", f"exit {status}"]).returncode == status


def test_one_that_was_killed_is_no_obstacle(alone):
    first = subprocess.Popen(
        [*alone, "make book", sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        first.stdout.readline()
        first.kill()
    assert subprocess.run([*alone, "make test", "true"]).returncode == 0
