"""The files of this course, as git lists them: also where the folder is no clone."""

import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def tracked(*places: str, root: Path = ROOT) -> list[Path]:
    """The files under these places of ``root`` (all, without any), less those that are ignored.

    In a folder that was unpacked from a zip they are all that ``.gitignore`` lets through.
    """
    with tempfile.TemporaryDirectory() as empty:
        # Whoever runs the tests need not own the clone.
        command = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false"]
        which = []
        if not (root / ".git").exists():
            subprocess.run(["git", "init", "-q", "--bare", empty], check=True)
            command += ["--git-dir", empty, "--work-tree", root]
            which = ["--others", "--exclude-standard"]
        listed = subprocess.run(
            [*command, "ls-files", *which, "--", *places],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        )
    return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]
