"""The course that learners get: its address, its first page, and this checkout as a repository.

The address is the one of ``_config.yml``, which every launch link names as well. A hub for trying
out takes a copy of this checkout for it: then links work before anything is published.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import yaml

ROOT = Path(__file__).resolve().parent.parent
IDENTITY = ["-c", "user.name=make hub", "-c", "user.email=hub@example.org"]


class CourseError(RuntimeError):
    """This checkout cannot be made a repository: what went wrong and what to do."""


@dataclass(frozen=True)
class Course:
    """The published repository, and where a plain login leads: a launch link of the first page."""

    url: str
    branch: str
    start: str

    @property
    def is_published(self) -> bool:
        """Whether ``url`` was changed."""
        return is_published(self.url)


def is_published(url: str) -> bool:
    """Whether an address is real: nobody on GitHub may have two hyphens in a row in a name."""
    return "/your--name/" not in url


def read() -> Course:
    """The course as ``_config.yml`` and ``_toc.yml`` say."""
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
    url, branch = repository["url"], repository["branch"]
    first = yaml.safe_load((ROOT / "_toc.yml").read_text())["root"]
    # nbgitpuller names the learner's folder after the repository.
    page = f"lab/tree/{url.rsplit('/', 1)[-1]}/{first}.md"
    query = urlencode({"repo": url, "branch": branch, "urlpath": page})
    return Course(url, branch, f"/hub/user-redirect/git-pull?{query}")


def copy(repository: Path, branch: str, root: Path = ROOT) -> None:
    """Bring ``branch`` of ``repository`` (made if it is not there) to what is in ``root`` now.

    All files that ``.gitignore`` does not name, committed or not, and of a downloaded archive as
    well as of a clone: ``root``'s own git is neither asked nor written to. A learner's push is
    refused. Raises ``CourseError``.
    """
    if not repository.exists():
        git("init", "--quiet", "--bare", "--template=", repository)
        hook = repository / "hooks" / "pre-receive"
        hook.parent.mkdir()
        hook.write_text("#!/bin/sh\necho 'The course is for reading only.'\nexit 1\n")
        hook.chmod(0o755)
    places = [f"--git-dir={repository}", f"--work-tree={root}"]
    state = repository.parent.resolve()  # with the key that signs cookies: never for learners
    but = f"/{state.relative_to(root)}" if state.is_relative_to(root) else ""
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "exclude").write_text(f"{but}\n")
    git(*places, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    git(*places, "add", "--all", cwd=root)
    if git(*places, "status", "--porcelain", "--untracked-files=no", cwd=root):
        git(*IDENTITY, *places, "commit", "--quiet", "--message=The course as it is here", cwd=root)


def git(*arguments, cwd=None) -> str:
    """What git prints, unmoved by anybody's settings. Raises ``CourseError``."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *arguments]
    options = {"env": environ, "capture_output": True, "text": True, "check": True}
    try:
        return subprocess.run(command, cwd=cwd, **options).stdout
    except FileNotFoundError:
        raise CourseError("git is missing, which brings learners the course: install it") from None
    except subprocess.CalledProcessError as error:
        raise CourseError(f"{error} {error.stderr.strip()}") from None


def in_place_of(url: str, repository: Path) -> dict[str, str]:
    """The environment in which git takes ``repository`` for what is at ``url``."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": url,
    }
