"""Ends of lines: a checkout has those of Linux, whatever Git was told; one that has not is told."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tracked import tracked

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "Makefile",
    "tools/setup.sh",
    ".gitattributes",
    "assets/readme.png",
    "clusters/jobs/elastic.sbatch",
]
GIT = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]


@pytest.fixture
def repository(tmp_path):
    """A repository with a few of the course's files, and a picture with both ends of lines."""
    folder = tmp_path / "repository"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "mixed.npz").write_bytes(b"a\r\nb\nc\r\n")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *GIT, *command], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    "settings", [["core.autocrlf=true"], ["core.eol=crlf"], ["core.autocrlf=true", "core.eol=crlf"]]
)
def test_git_for_windows_settings_change_no_file(repository, tmp_path, settings):
    options = [word for setting in settings for word in ("-c", setting)]
    clone = tmp_path / "clone"
    subprocess.run(["git", *options, "clone", "-q", repository, clone], check=True)
    for name in [*FILES, "mixed.npz"]:
        assert (clone / name).read_bytes() == (repository / name).read_bytes(), name


def test_no_text_of_the_repository_is_kept_with_other_ends():
    contents = {path: path.read_bytes() for path in tracked()}
    assert contents
    assert [
        p for p, content in contents.items() if b"\r\n" in content and b"\0" not in content
    ] == []


def crlf(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("changed", [["tools/setup.sh"], ["Makefile", "tools/setup.sh"]])
@pytest.mark.parametrize("target", ["help", "setup", "book", "test"])
def test_a_checkout_with_other_ends_is_told_by_make(repository, target, changed):
    for name in changed:
        crlf(repository / name)
    made = subprocess.run(["make", target], cwd=repository, capture_output=True, text=True)
    assert made.returncode != 0
    assert "end as on Windows (CRLF)" in made.stderr and "Clone it anew" in made.stderr


def test_what_it_says_mends_it(repository):
    for name in ("Makefile", "tools/setup.sh"):
        crlf(repository / name)
    result = subprocess.run(["make", "help"], cwd=repository, capture_output=True, text=True).stderr
    command = re.search(r"git grep .*//'", result)[0]
    subprocess.run(["bash", "-c", command], cwd=repository, check=True)
    for name in FILES:
        assert (repository / name).read_bytes() == (ROOT / name).read_bytes()
    made = subprocess.run(["make", "help"], cwd=repository, capture_output=True, text=True)
    assert made.returncode == 0 and "make book" in made.stdout, made.stderr
