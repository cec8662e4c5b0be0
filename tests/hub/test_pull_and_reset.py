"""A learner's copy of the course: brought, edited, updated, reset; nothing is lost."""

import errno
import subprocess
import sys

import pytest
from nbgitpuller.pull import GitPuller

from d2lmgpu.course.reset import ResetError, reset

CHAPTER = "chapters/one.ipynb"


def git(*arguments, cwd):
    identity = ["-c", "user.name=Course", "-c", "user.email=course@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def a_git_of_nobody(monkeypatch):
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "learner")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "learner@example.org")


@pytest.fixture
def published(tmp_path):
    """The course's repository."""
    folder = tmp_path / "published"
    (folder / "chapters").mkdir(parents=True)
    git("init", "-q", "-b", "main", ".", cwd=folder)
    publish(folder, "first\nsecond\nthird\n")
    return folder


def publish(folder, text):
    (folder / CHAPTER).write_text(text)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "chapter", cwd=folder)


def pull(published, home, branch="main"):
    """What the launch button does; returns all that the learner is shown."""
    return list(GitPuller(published.as_uri(), str(home), branch=branch).pull())


@pytest.fixture
def home(tmp_path, published):
    """The learner's copy."""
    home = tmp_path / "home"
    pull(published, home)
    return home


def test_an_edit_in_conflict_is_kept(published, home):
    (home / CHAPTER).write_text("MINE\nsecond\nthird\n")
    publish(published, "THEIRS\nsecond\nthird, improved\n")
    pull(published, home)
    text = (home / CHAPTER).read_text()
    assert "MINE" in text and "<<<<" not in text


def test_reset_brings_the_published_version_and_keeps_the_learners(published, home):
    (home / CHAPTER).write_text("MINE\n")
    pull(published, home)  # which keeps the edit, in a commit
    publish(published, "newer\n")
    git("fetch", "-q", cwd=home)  # an update that was begun and not finished
    copy = reset(home / CHAPTER)
    assert (home / CHAPTER).read_text() == "first\nsecond\nthird\n"
    assert copy.parent == home / "chapters" and copy.read_text() == "MINE\n"
    assert copy.name.startswith("one.mine-") and copy.suffix == ".ipynb"
    # And the launch button goes on from there: the newest version arrives, the copy stays.
    pull(published, home)
    assert (home / CHAPTER).read_text() == "newer\n"
    assert copy.read_text() == "MINE\n"


def test_a_deleted_notebook_comes_back(home):
    (home / CHAPTER).unlink()
    assert reset(home / CHAPTER) is None
    assert (home / CHAPTER).read_text() == "first\nsecond\nthird\n"


def test_an_unchanged_notebook_leaves_no_copy(home):
    assert reset(home / CHAPTER) is None
    assert sorted(path.name for path in (home / "chapters").iterdir()) == ["one.ipynb"]


def test_no_network_is_needed(published, home):
    published.rename(published.with_name("gone"))
    (home / CHAPTER).write_text("MINE\n")
    assert reset(home / CHAPTER).read_text() == "MINE\n"
    assert (home / CHAPTER).read_text() == "first\nsecond\nthird\n"


def test_a_full_disk_loses_nothing(home, monkeypatch):
    (home / CHAPTER).write_text("MINE\n")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ResetError, match="is as it was: No space left on device"):
        reset(home / CHAPTER)
    assert (home / CHAPTER).read_text() == "MINE\n"
    assert not list((home / "chapters").glob(".*"))


def test_what_cannot_be_reset_is_said(tmp_path, published, home):
    with pytest.raises(ResetError, match=r"mine\.ipynb is not in the published course"):
        (home / "mine.ipynb").write_text("x")
        reset(home / "mine.ipynb")
    with pytest.raises(ResetError, match="chapters is not in the published course"):
        reset(home / "chapters")
    with pytest.raises(ResetError, match="in no copy of the course"):
        reset(tmp_path / "elsewhere.ipynb")
    with pytest.raises(ResetError, match="follows no published branch"):
        reset(published / CHAPTER)
    assert (home / "mine.ipynb").read_text() == "x"


def test_on_the_command_line(home):
    (home / CHAPTER).write_text("MINE\n")
    command = [sys.executable, "-m", "d2lmgpu", "reset"]
    result = subprocess.run([*command, CHAPTER], cwd=home, capture_output=True, text=True)
    assert "published version again" in result.stdout and "Yours is in one.mine-" in result.stdout
    result = subprocess.run([*command, "none.ipynb"], cwd=home, capture_output=True, text=True)
    assert result.returncode == 1 and "is not in the published course" in result.stderr


@pytest.mark.parametrize(
    "source, branch, words", [("none", "main", "ls-remote"), ("published", "x", "Branch does not")]
)
def test_a_repository_or_branch_that_is_not_there(tmp_path, published, source, branch, words):
    """The words that README.md explains; and nothing is left that stops the next try."""
    home = tmp_path / "new-home"
    with pytest.raises(Exception, match=words):
        pull(tmp_path / source, home, branch)
    assert not home.exists()
    pull(published, home)
    assert (home / CHAPTER).exists()
