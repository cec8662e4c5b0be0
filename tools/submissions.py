"""What learners have handed in: files, folders for each, zips, as learning platforms give them."""

import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SIZE = 50 << 20  # bytes of a submission, with the files beside it
UNPACKED = 200 << 20  # bytes of a zip's content
FILES = 1000  # of a folder or a zip
DEEP = 3  # zips in zips
NOTEBOOK, SCRIPT = ".ipynb", ".py"
MADE_BY_OTHERS = {
    ".git",
    ".ipynb_checkpoints",
    ".venv",
    "__MACOSX",
    "__pycache__",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "Icon\r",
}
LEFT_OUT = "{}: left out, no learner has made it."
APPLE_DOUBLE = "._"  # begins the name of what macOS cannot keep elsewhere of a file
FROM_THE_NET = ":Zone.Identifier"  # ends the name of Windows' note of it, which WSL makes a file


@dataclass
class Submission:
    """A row to be: ``name`` is its path in the folder; ``remark`` says why it is not graded."""

    name: str
    files: list[Path] = field(default_factory=list)  # what is graded, then what lies beside it
    remark: str = ""


class Unreadable(ValueError):
    """A file that is none, or too much."""


def submissions(folder: Path, unpacked: Path, report, left_out=()) -> list[Submission]:
    """All that is in ``folder``, in order; zips are unpacked to ``unpacked``.

    Each file in the folder itself is one submission. In the folders below, all files that lie
    together are one learner's: a notebook gets those beside it. ``report`` is called with a word
    for what gets no row. ``left_out`` are names in ``folder`` that are not looked at.
    """
    rows = []
    for path in entries(folder, report):
        if path.name not in left_out:
            read = of_folder if path.is_dir() and not path.is_symlink() else of_file
            rows += read(path, path.name, unpacked, report)
    return rows


def entries(folder, report) -> Iterator:
    """What is in a folder, but for what systems and editors put there."""
    for path in sorted(folder.iterdir()):
        if made_by_others(path.name):
            report(LEFT_OUT.format(path.name))
        else:
            yield path


def made_by_others(name) -> bool:
    """Whether a system or an editor has put a file or folder of this name there."""
    return name in MADE_BY_OTHERS or name.startswith(APPLE_DOUBLE) or name.endswith(FROM_THE_NET)


def of_folder(folder, name, unpacked, report, deep=0) -> list:
    """The submissions in a folder that may be one learner's."""
    rows, files = [], []
    for path in entries(folder, report):
        if path.is_dir() and not path.is_symlink():
            rows += of_folder(path, f"{name}/{path.name}", unpacked, report, deep)
        else:
            files.append(path)
    graded = [path for path in files if path.suffix == NOTEBOOK]
    graded = graded or [path for path in files if path.suffix == SCRIPT]
    for path in files:
        companions = [other for other in files if other is not path and regular(other)]
        companions = [other for other in companions if other.suffix not in (NOTEBOOK, ".zip")]
        if path in graded or path.suffix.lower() == ".zip" or not regular(path) or not graded:
            for submission in of_file(path, f"{name}/{path.name}", unpacked, report, deep):
                if submission.files and path in graded:
                    submission.files += companions
                rows.append(submission)
        else:
            report(f"{name}/{path.name}: no row, it goes with the notebook beside it.")
    if not rows:
        rows.append(Submission(name, remark="it holds no file"))
    return rows


def of_file(path, name, unpacked, report, deep=0) -> list:
    """The submissions of one file: several in a zip."""
    if not regular(path):
        what = "a link" if path.is_symlink() else "no regular file"
        return [Submission(name, remark=f"it is {what}: hand in the notebook itself")]
    if path.suffix in (NOTEBOOK, SCRIPT):
        return [Submission(name, [path])]
    if path.suffix.lower() == ".zip":
        try:
            target = unpack(path, unpacked, report, deep)
        except Exception as error:  # whatever zipfile makes of a file that is none
            return [Submission(name, remark=f"this zip cannot be unpacked: {error}")]
        return of_folder(target, name, unpacked, report, deep + 1)
    ending = f"its name ends in {path.suffix}" if path.suffix else "its name has no ending"
    return [Submission(name, remark=f"{ending}: hand in a notebook, whose name ends in .ipynb")]


def regular(path) -> bool:
    """Whether it is a file, and neither a link nor a pipe."""
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def content(path: Path, most: int) -> bytes:
    """What a regular file holds. Raises Unreadable for any other, or more than ``most`` bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("it is no regular file: hand in the notebook itself")
        data = file.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"it is larger than {most >> 20} MB, with the files beside it")
    return data


def unpack(path, unpacked, report, deep) -> Path:
    """The folder to which a zip was unpacked. Raises Unreadable, or what zipfile raises."""
    if deep >= DEEP:
        raise Unreadable("it lies in a zip in a zip")
    target, left = unpacked / str(len(list(unpacked.iterdir()))), UNPACKED
    target.mkdir()
    content(path, UNPACKED)
    with zipfile.ZipFile(path) as file:
        members, left_out = [], {}
        for member in file.infolist():
            place = Path(member.filename.replace("\\", "/"))  # as Windows' own programs wrote it
            parts = [part for part in place.parts if part not in ("/", "..", ".")]
            if name := next(filter(made_by_others, parts), None):
                left_out[name] = True
            elif not member.is_dir():
                members.append((member, target.joinpath(*parts)))
        for name in left_out:
            report(LEFT_OUT.format(name))
        if len(members) > FILES:
            raise Unreadable(f"it holds more than {FILES} files")
        for member, place in members:
            place.parent.mkdir(parents=True, exist_ok=True)
            with file.open(member) as source:
                data = source.read(left + 1)  # whatever size it says it has
            left -= len(data)
            if left < 0:
                raise Unreadable(f"it unpacks to more than {UNPACKED >> 20} MB")
            place.write_bytes(data)
    return target
