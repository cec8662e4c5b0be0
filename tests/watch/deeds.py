"""What a script may do to files: each deed is done in a project of its own, see ``made``."""

import contextlib
import ctypes
import errno
import hashlib
import logging
import mmap
import multiprocessing
import os
import shelve
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FILES = ("best.txt", "deep/a/b.txt")
OLD = 1_600_000_000.0  # when the files were made


def made(folder, name):
    """The project in which a deed is done, with links to what is outside of it."""
    project, outside = Path(folder, name, "project"), Path(folder, name, "outside")
    for file in [*(project / file for file in FILES), outside / "kept.txt", outside / "box/in.txt"]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"the reader's own {file.name}" * 100)
    (project / "linked").symlink_to("best.txt")
    (project / "elsewhere").symlink_to(outside)
    for path in sorted(Path(folder, name).rglob("*"), reverse=True):
        os.utime(path, (OLD, OLD), follow_symlinks=False)


def snapshot(folder):
    """All that can be seen of the files below a folder, the time of the last reading aside."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        status, content = path.lstat(), None
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.is_symlink():
            content = os.readlink(path)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        seen[str(path.relative_to(folder))] = (oct(status.st_mode), status.st_size, *times, content)
    return seen


def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("new" if "b" not in mode else b"new")


def of_os(flags, do):
    number = os.open("best.txt", flags)
    do(number)
    os.close(number)


def database():
    with contextlib.closing(sqlite3.connect("best.db")) as base:
        base.execute("create table runs (loss real)")
        base.commit()


def in_a_folder(do):
    number = os.open(".", os.O_RDONLY)
    do(number)
    os.close(number)


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def mapped():
    import numpy as np

    values = np.memmap("best.txt", mode="r+", dtype="u1")
    values[:] = 0
    values.flush()


def archive():
    with zipfile.ZipFile("best.zip", "w") as file:
        file.write("best.txt")
    shutil.unpack_archive("best.zip", "deep")


def changed_directory():
    os.chdir("deep")
    shutil.rmtree("a")
    write("new.txt")


def in_a_child():
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            shutil.rmtree("deep")
            os._exit(0)
        os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise PermissionError(os.strerror(errno.EACCES))


def saved_whole(text="new"):
    """As many scripts save: to another name first."""
    with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
        file.write(text)
    os.replace(file.name, "best.txt")


def of_c(call, *arguments):
    """What compiled code does, without a function of Python's."""
    if getattr(ctypes.CDLL(None, use_errno=True), call)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def in_a_thread():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(shutil.rmtree, "deep").result()


def in_a_pool():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(os.remove, ["best.txt"])


def mapped_by_python():
    with open("best.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:3] = b"new"


def between_files():
    with open("deep/a/b.txt", "rb") as source, open("best.txt", "r+b") as to:
        os.sendfile(to.fileno(), source.fileno(), 0, 100)


def kept_in_a_shelf():
    with shelve.open("best.shelf") as shelf:
        shelf["loss"] = 1.0


def logged():
    handler = logging.FileHandler("best.txt")
    handler.emit(logging.LogRecord("train", 20, "", 0, "loss", (), None))
    handler.close()


def rotated():
    for number in range(3):
        write(f"best{number}.pt")
    for old in sorted(Path().glob("*.pt"))[:-1]:
        old.unlink()


def net():
    import torch

    return torch.nn.Linear(2, 2)


def saved(path):
    import torch

    torch.save(net().state_dict(), path)


def scripted():
    import torch

    torch.jit.script(net()).save("best.txt")


def shared_tensor():
    import torch

    torch.from_file("best.txt", shared=True, size=10, dtype=torch.uint8).zero_()


def tensors():
    from safetensors.torch import save_file

    save_file(net().state_dict(), "best.txt")


DEEDS = {
    "rmtree": lambda: shutil.rmtree("deep"),
    "rmtree, absolute": lambda: shutil.rmtree(os.path.abspath("deep")),
    "rmtree of all": lambda: shutil.rmtree(os.getcwd()),
    "rmtree and makedirs": lambda: (shutil.rmtree("deep"), os.makedirs("deep")),
    "rmtree by another program": lambda: run("rm", "-rf", "deep", "best.txt"),
    "rmtree in a child": in_a_child,
    "rmtree after chdir": changed_directory,
    "rmtree through a link": lambda: shutil.rmtree("elsewhere/box"),
    "remove": lambda: os.remove("best.txt"),
    "remove in an open folder": lambda: in_a_folder(lambda f: os.remove("best.txt", dir_fd=f)),
    "remove through a link": lambda: os.remove("elsewhere/kept.txt"),
    "unlink a link": lambda: os.unlink("linked"),
    "Path.unlink": lambda: Path("best.txt").unlink(),
    "removedirs": lambda: (os.remove("deep/a/b.txt"), os.removedirs("deep/a")),
    "rename a folder": lambda: os.rename("deep", "deep_old"),
    "rename a file": lambda: os.rename("best.txt", "old.txt"),
    "renames": lambda: os.renames("deep/a", "new/place/a"),
    "replace": lambda: os.replace("best.txt", "deep/a/b.txt"),
    "move a folder": lambda: shutil.move("deep", "moved"),
    "move by another program": lambda: run("mv", "deep", "moved"),
    "Path.rename": lambda: Path("deep/a").rename("deep/c"),
    "write": lambda: write("best.txt"),
    "append": lambda: write("best.txt", "a"),
    "write through a link": lambda: write("linked"),
    "write outside, through a link": lambda: write("elsewhere/kept.txt"),
    "write outside": lambda: write("../outside/kept.txt"),
    "write a new file outside": lambda: write("../outside/new.txt"),
    "write_bytes": lambda: Path("best.txt").write_bytes(b""),
    "open r+": lambda: write("best.txt", "r+"),
    "saved whole": saved_whole,
    "checkpoints in turn": rotated,
    "os.open that truncates": lambda: of_os(os.O_WRONLY | os.O_TRUNC, lambda f: None),
    "os.open and pwrite": lambda: of_os(os.O_RDWR, lambda f: os.pwrite(f, b"new", 3)),
    "os.open that creates": lambda: os.close(os.open("new", os.O_CREAT | os.O_WRONLY)),
    "ftruncate": lambda: of_os(os.O_RDWR, lambda f: os.ftruncate(f, 3)),
    "truncate": lambda: os.truncate("best.txt", 3),
    "copy over": lambda: shutil.copy2("deep/a/b.txt", "best.txt"),
    "copytree over": lambda: shutil.copytree("deep", "copy"),
    "chmod": lambda: os.chmod("best.txt", 0o600),
    "chmod a folder": lambda: Path("deep").chmod(0o700),
    "utime": lambda: os.utime("best.txt", (1, 1)),
    "touch": lambda: Path("best.txt").touch(),
    "touch a new one": lambda: Path("new.txt").touch(),
    "symlink": lambda: os.symlink("best.txt", "latest"),
    "symlink over": lambda: (os.remove("linked"), os.symlink("deep", "linked")),
    "hard link": lambda: os.link("best.txt", "second.txt"),
    "fifo": lambda: os.mkfifo("pipe"),
    "mkdir": lambda: os.makedirs("new/folder"),
    "rmdir": lambda: (os.remove("deep/a/b.txt"), os.rmdir("deep/a")),
    "mkstemp": lambda: os.close(tempfile.mkstemp(dir=".")[0]),
    "mkdtemp": lambda: tempfile.mkdtemp(dir="."),
    "sqlite": database,
    "memmap": mapped,
    "zip and unpack": archive,
    "sed -i": lambda: run("sed", "-i", "s/reader/script/", "best.txt"),
    "a shell's >": lambda: run("sh", "-c", "echo new > best.txt; echo more >> log.txt"),
    "find -delete": lambda: run("find", "deep", "-delete"),
    "chmod by another program": lambda: run("chmod", "600", "best.txt"),
    "touch by another program": lambda: run("touch", "best.txt"),
    "torch.save": lambda: saved("best.txt"),
    "torch.save, new": lambda: saved("deep/ck.pt"),
    "jit.save": scripted,
    "from_file": shared_tensor,
    "safetensors": tensors,
    "C's unlink": lambda: of_c("unlink", b"best.txt"),
    "C's rename": lambda: of_c("rename", b"best.txt", b"old.txt"),
    "C's truncate": lambda: of_c("truncate", b"best.txt", 3),
    "C's mkdir": lambda: of_c("mkdir", b"made", 0o755),
    "rmtree in a thread": in_a_thread,
    "remove in a pool": in_a_pool,
    "mmap": mapped_by_python,
    "sendfile": between_files,
    "fallocate": lambda: of_os(os.O_RDWR, lambda f: os.posix_fallocate(f, 0, 10_000)),
    "fchmod": lambda: of_os(os.O_RDONLY, lambda f: os.fchmod(f, 0o600)),
    "shelve": kept_in_a_shelf,
    "logging": logged,
    "by /proc/self/cwd": lambda: os.remove("/proc/self/cwd/best.txt"),
    "tar -x": lambda: run("sh", "-c", "tar -cf a.tar best.txt && tar -xf a.tar --unlink-first"),
    "git init": lambda: run("git", "init", "."),
    "cp -f": lambda: run("cp", "-f", "deep/a/b.txt", "best.txt"),
    "ln -sf": lambda: run("ln", "-sfn", "deep", "linked"),
    "xattr": lambda: os.setxattr("best.txt", "user.loss", b"1"),
    "home": lambda: write(Path.home() / "outside-of-the-run.txt"),
}


def do(deeds, folder):
    """What each deed raised, as text, or None."""
    raised = {}
    for name, deed in deeds.items():
        os.chdir(Path(folder, name, "project"))
        try:
            deed()
            raised[name] = None
        except Exception as error:
            raised[name] = f"{type(error).__name__}: {error}"
    return raised
