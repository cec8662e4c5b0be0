"""Where there is no view: what Python's functions write goes to a folder of the run.

A file that is written, at any path, lies below ``FOLDER/written`` at the same path, for all ranks;
from then on it is read from there. Seen are Python's ``open`` (so ``pathlib``, ``pickle``, NumPy,
``zipfile``), ``torch.save`` and ``load``, and the functions of ``os`` below. Not seen is what other
programs write, or compiled code by itself: Landlock refuses that, but for modes and times
and for /dev/shm.
"""

import builtins
import contextlib
import io
import os
import shutil
from functools import wraps
from pathlib import Path

UNTOUCHED = ("/dev/", "/proc/", "/sys/")
READ = ("stat", "lstat", "listdir", "scandir", "access")
REMOVE = ("remove", "unlink", "rmdir")
CHANGE = ("chmod", "chown", "lchown", "utime", "setxattr", "removexattr")  # as the system has them


class Diversion:
    """Paths as they are seen by the script -> where they are."""

    def __init__(self, folder):
        self.folder, self.written = str(folder), os.path.join(folder, "written")

    def shadow(self, path) -> str | None:
        """Where ``path`` lies once it is written; None for what is no path or may be written."""
        if isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        path = os.path.abspath(os.fsdecode(path))
        if path.startswith((self.folder, *UNTOUCHED)):
            return None
        return os.path.join(self.written, os.path.splitdrive(path)[1].lstrip(os.sep))

    def to_read(self, path) -> str | os.PathLike:
        """Where to read ``path``: where it was written, else where the script says."""
        shadow = self.shadow(path)
        if shadow and _exists(shadow) and not (_is_folder(shadow) and _exists(path)):
            return shadow
        return path

    def to_write(self, path, keep=False) -> str | os.PathLike:
        """Where to write ``path``; with ``keep`` its content so far is there."""
        shadow = self.shadow(path)
        if shadow is None:
            return path
        parent = os.path.dirname(os.path.abspath(os.fsdecode(path)))
        if _exists(parent) or _exists(self.shadow(parent) or parent):  # else: as the script has it
            _make_folders(os.path.dirname(shadow))
            if keep and _exists(path) and not _exists(shadow):
                shutil.copyfile(path, shadow)
            return shadow
        return path


_stat, _mkdir, _open = os.stat, os.mkdir, io.open


def _exists(path):
    try:
        _stat(path)
    except OSError:
        return False
    return True


def _is_folder(path):
    return _exists(path) and (_stat(path).st_mode & 0o170000) == 0o040000


def _make_folders(path):
    if not _exists(path):
        _make_folders(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # another rank was faster
            _mkdir(path)


def divert(folder) -> Diversion:
    """From now on this process writes its files below ``folder``; its own files are not there."""
    diversion = Diversion(folder)

    def opened(file, mode="r", *args, **kwargs):
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if writes and "x" in mode and _exists(file):
            return _open(file, mode, *args, **kwargs)  # which raises
        keep = writes and not set(mode) & set("wx")
        file = diversion.to_write(file, keep) if writes else diversion.to_read(file)
        return _open(file, mode, *args, **kwargs)

    builtins.open = io.open = wraps(_open)(opened)

    def read(real):
        return lambda path=".", *a, **k: real(diversion.to_read(path), *a, **k)

    def remove(real):
        return lambda path, *a, **k: _remove(diversion, real, path, *a, **k)

    def change(real):
        return lambda path, *a, **k: real(_changed(diversion, path), *a, **k)

    def move(real):
        return lambda source, to, **k: _move(diversion, real, source, to, **k)

    def make(real):
        return lambda path, *a, **k: real(
            path if _exists(path) else diversion.to_write(path), *a, **k
        )

    for name in READ:
        _wrap(os, name, read)
    for name in REMOVE:
        _wrap(os, name, remove)
    for name in filter(vars(os).__contains__, CHANGE):
        _wrap(os, name, change)
    for name in ("rename", "replace"):
        _wrap(os, name, move)
    _wrap(os, "mkdir", make)
    return diversion


def divert_torch(torch, diversion) -> None:
    """The same for what PyTorch writes itself."""

    def save(real):
        return lambda obj, f, *a, **k: real(obj, diversion.to_write(f), *a, **k)

    def load(real):
        return lambda f, *a, **k: real(diversion.to_read(f), *a, **k)

    _wrap(torch, "save", save)
    _wrap(torch, "load", load)


def _wrap(module, name, made):
    real = getattr(module, name)
    setattr(module, name, wraps(real)(made(real)))


def _remove(diversion, real, path, *args, **kwargs):
    shadow = diversion.shadow(path)
    if shadow is None or _exists(shadow):
        return real(shadow or path, *args, **kwargs)
    return None if _exists(path) else real(path, *args, **kwargs)  # which raises


def _changed(diversion, path):
    """The copy of ``path`` that a change may go to; a file descriptor is of a file that is open."""
    shadow = diversion.shadow(path)
    if shadow is None or _exists(shadow):
        return shadow or path
    if not _exists(path):
        return path
    _make_folders(shadow if _is_folder(path) else os.path.dirname(shadow))
    if not _is_folder(path):
        shutil.copyfile(path, shadow)
    return shadow


def _move(diversion, real, source, to, **kwargs):
    shadow = diversion.shadow(source)
    target = diversion.to_write(to)
    if shadow and not _exists(shadow) and Path(source).is_file():
        return shutil.copyfile(source, target) and None
    return real(diversion.to_read(source), target, **kwargs)
