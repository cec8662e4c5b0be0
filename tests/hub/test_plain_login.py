"""Who logs in without a launch link sees the course's first page, and every chapter from there."""

import json
import subprocess

import course
import pytest
from learner import ADA, choose, lab_hub, log_in
from pages import wait_for_notebook
from running_hub import ROOT
from servers import SECONDS

FOLDER = course.read().url.rsplit("/", 1)[-1]
TEXT = ".jp-Notebook .jp-RenderedMarkdown"


@pytest.fixture
def hub(tmp_path):
    with lab_hub(tmp_path, unedited=True) as running:
        yield running


def disabled_extensions(page):
    """The ids of JupyterLab's extensions that are switched off."""
    settings = json.loads(page.locator("#jupyter-config-data").text_content())
    return settings["disabledExtensions"]


def test_a_plain_login_shows_the_chapters(hub, context):
    page = context.new_page()
    page.goto(hub.url)
    log_in(page, hub)
    choose(page, gpus=0)
    wait_for_notebook(page, f"{FOLDER}/chapters/intro.md")
    assert page.locator(".jp-Dialog").count() == 0, "nothing is asked"
    heading = page.locator(f"{TEXT} h1")
    assert "Hands-On Multi-GPU Training" in heading.text_content()
    assert "@jupyterlab/apputils-extension:announcements" in disabled_extensions(page)
    # It reads as a page: its cover is a picture, and nothing shows how it was made.
    cover = page.locator(f"{TEXT} img")
    cover.evaluate("img => img.decode()")
    assert cover.evaluate("img => img.naturalWidth") > 100
    assert page.locator(f"{TEXT} pre").count() == 0
    assert "{" not in page.locator(TEXT).inner_text(), "a role as its source"
    # Every chapter that the first page names, one click away.
    copy = hub.folder / "state/home" / ADA / FOLDER / "chapters"
    links = page.locator(f"{TEXT} a[href*='.ipynb']")
    assert links.count() >= 10
    page.locator(f"{TEXT} a", has_text="Data Parallelism in NumPy").click()
    wait_for_notebook(page, f"{FOLDER}/chapters/foundations/data-parallelism.ipynb")
    original = ROOT / "chapters/foundations/data-parallelism.ipynb"
    assert (copy / "foundations/data-parallelism.ipynb").read_bytes() == original.read_bytes()


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS)


@pytest.fixture
def checkout(tmp_path):
    """A folder with a chapter, a file that is not to be published, and no git."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "chapter.md").write_text("one\n")
    (folder / ".gitignore").write_text("secret\n")
    (folder / "secret").write_text("mine\n")
    return folder


def clone(repository, at):
    answer = run("git", "clone", "-q", repository.as_uri(), at, cwd=at.parent)
    assert answer.returncode == 0, answer.stderr
    return at


def test_the_copy_is_what_the_checkout_holds_now(checkout, tmp_path):
    repository = tmp_path / "course.git"
    course.copy(repository, "main", checkout)
    learner = clone(repository, tmp_path / "learner")
    assert sorted(path.name for path in learner.iterdir()) == [".git", ".gitignore", "chapter.md"]
    (checkout / "chapter.md").write_text("two\n")
    (checkout / "new.md").write_text("new\n")
    for _ in range(2):  # the second has nothing to add
        course.copy(repository, "main", checkout)
    assert run("git", "pull", "-q", "--ff-only", cwd=learner).returncode == 0
    assert (learner / "chapter.md").read_text() == "two\n"
    assert (learner / "new.md").exists()
    assert run("git", "rev-list", "--count", "HEAD", cwd=learner).stdout == "2\n"
    assert not (checkout / ".git").exists()


def test_a_clone_is_copied_with_what_is_not_committed(checkout, tmp_path):
    run("git", "init", "-q", cwd=checkout)
    before = sorted(checkout.rglob("*"))
    course.copy(tmp_path / "course.git", "main", checkout)
    assert (clone(tmp_path / "course.git", tmp_path / "learner") / "chapter.md").exists()
    assert sorted(checkout.rglob("*")) == before


def test_a_learner_cannot_write_to_it(checkout, tmp_path):
    repository = tmp_path / "course.git"
    course.copy(repository, "main", checkout)
    learner = clone(repository, tmp_path / "learner")
    (learner / "chapter.md").write_text("mine\n")
    identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    run("git", *identity, "commit", "-qam", "mine", cwd=learner)
    pushed = run("git", "push", "-q", cwd=learner)
    assert pushed.returncode != 0 and "for reading only" in pushed.stderr
    assert (clone(repository, tmp_path / "other") / "chapter.md").read_text() == "one\n"


def test_the_hubs_own_state_is_never_in_it(checkout, tmp_path):
    state = checkout / "state"
    state.mkdir()
    (state / "cookie_secret").write_text("key")
    course.copy(state / "course.git", "main", checkout)
    learner = clone(state / "course.git", tmp_path / "learner")
    assert not (learner / "state").exists()


def test_without_git_the_hub_says_what_to_do(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(course.CourseError, match="git is missing"):
        course.copy(tmp_path / "course.git", "main", checkout)
