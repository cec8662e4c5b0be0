"""A view of this machine's files in which a script may do all that it likes, on Linux.

In a mount namespace of its own an overlay lies over each folder: what is written, removed or
renamed there is so in the view, for the script, what it starts and their compiled code; the files
below the overlay stay as they are. They are read from where they lie, and one is copied when it is
changed. A folder over which no overlay can be laid is read-only. An ordinary account gets the mount
namespace together with a user namespace, in which it stays itself. There the kernel copies nothing
that belongs to somebody else or to another group, even if the account may change it: around the
script's folder, the home and /var/tmp such folders, and in the script's folder a bounded part of
such files, are copied before.

    FOLDER/view/N/upper    what was changed below the N-th folder that is covered
    FOLDER/view/memory     the same, in memory, of shared memory, and of the folder in which FOLDER
                           itself is: an overlay cannot lie over the place to which it writes

Linux 5.12 or later. Sources: the kernel's Documentation/filesystems/overlayfs.rst, mount_setattr(2)
and user_namespaces(7).
"""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import stat
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from d2lmgpu.machine.hardware import lines
from d2lmgpu.watch.files import kernel

# Read-only, and as it is: the kernel's own, and the place of other programs' sockets, which nobody
# reaches through an overlay.
AS_IT_IS = ("/proc", "/sys", "/dev", "/run")
SHARED_MEMORY = "/dev/shm"
TEMPORARY = "/var/tmp"  # for everybody, in a folder of root's; /tmp is covered by itself
LOOKED_AT = 10_000  # files and folders below the script's, for those of others
COPIED = 100 << 20  # bytes of them that are copied before


@dataclass(frozen=True)
class View:
    """The namespaces of a view."""

    namespaces: list[tuple[int, int]]  # (file descriptor, kind), in the order to enter them
    root: int  # file descriptor of its topmost folder

    def enter(self) -> None:
        """Go into the view; for a new process, before it becomes another program."""
        current = os.getcwd()
        for namespace, kind in self.namespaces:
            kernel.join(namespace, kind)
        os.fchdir(self.root)  # whoever enters has left a chroot, and with it what is protected
        os.chroot(".")
        os.chdir(current)  # the same folder, under its overlay


def build(folder, work) -> View:
    """A view whose changes lie in ``folder``, for a script that runs in the folder ``work``.

    Raises OSError, in words, where there can be none, or none in which ``work`` can be changed.

    A child of this process makes the namespaces: if it fails half-way, nothing has happened here.
    """
    answer_pipe, end_pipe = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(end_pipe[1])
            os.write(answer_pipe[1], json.dumps(_attempt(folder, work)).encode() + b"\n")
            os.read(end_pipe[0], 1)  # the namespaces live until this process ends, or are held open
        finally:
            os._exit(0)
    for theirs in (answer_pipe[1], end_pipe[0]):
        os.close(theirs)
    try:
        with os.fdopen(answer_pipe[0], "rb") as pipe:
            answer = json.loads(pipe.readline() or '{"error": "the process that made it ended"}')
        if "error" in answer:
            raise OSError(answer["error"])
        kinds = {"user": kernel.CLONE_NEWUSER, "mnt": kernel.CLONE_NEWNS}
        namespaces = [
            (os.open(f"/proc/{child}/ns/{name}", os.O_RDONLY), kinds[name])
            for name in answer["namespaces"]
        ]
        return View(namespaces, os.open(f"/proc/{child}/root", os.O_PATH))
    finally:
        os.close(end_pipe[1])
        os.waitpid(child, 0)


def _attempt(folder, work):
    """In the child: make the namespaces; a line for the parent."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        namespaces = _unshare()
        _cover_all(*map(os.path.realpath, (folder, work)), as_user="user" in namespaces)
    except OSError as error:
        return {"error": f"{error.strerror} ({error.filename})"}
    return {"namespaces": namespaces}


def _unshare():
    """Namespaces of this process's own; their names."""
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):  # root of a container may not
            kernel.unshare(kernel.CLONE_NEWNS)
            return ["mnt"]
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")
    return ["user", "mnt"]


def _cover_all(folder, work, as_user):
    """Make all read-only but overlays; one must lie over ``work``."""
    home = os.path.realpath(os.path.expanduser("~"))
    theirs = _of_others(work, [home, TEMPORARY]) if as_user else {}
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    mounted = _mount_points()
    kernel.read_only("/", below=True)
    with contextlib.suppress(PermissionError):  # it may have been so before
        kernel.read_only("/proc", on=False)  # of its own processes a script may set what it likes
    if not as_user:
        kernel.mount("/proc/sys", "/proc/sys", flags=kernel.MS_BIND)
        kernel.read_only("/proc/sys")
    kernel.mount(folder, folder, flags=kernel.MS_BIND)
    kernel.read_only(folder, on=False)
    own = f"/proc/self/fd/{os.open(folder, os.O_PATH)}"
    changes, memory = f"{own}/view", f"{own}/view/memory"
    os.makedirs(memory)
    kernel.mount("tmpfs", memory, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
    reason = OSError(errno.EBUSY, "something is mounted below it", work)
    shared = [SHARED_MEMORY] if os.path.isdir(SHARED_MEMORY) else []
    for number, covered in enumerate([*shared, *_to_cover("/", mounted)]):
        around = is_below(folder, [covered])
        places = [memory] if around or covered in shared else [changes, memory]
        error = _lay(covered, [f"{place}/{number}" for place in places], as_user, theirs)
        if error and covered in shared:  # then an empty one: processes need some
            kernel.mount("tmpfs", covered, "tmpfs", options="mode=1777")
            if around:
                os.makedirs(folder)
        if around:
            kernel.mount(own, folder, flags=kernel.MS_BIND)
        if is_below(work, [covered]):
            reason = error
    if reason:
        raise reason


def _of_others(work, others):
    """``{path: mode}`` of what is to be copied before, see above; outer folders first.

    The mode is that of a copy of the account's own, which may do to it what it may do here.
    """
    own = os.geteuid(), os.getegid()
    theirs, around, looked, size = set(), {work, *others}, 0, 0
    folders = [(work, False)]  # and whether they are the account's own
    for folder, folder_own in folders:  # breadth first: it grows
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                looked += 1
                status = entry.stat(follow_symlinks=False)
                is_own, taken = (status.st_uid, status.st_gid) == own, status.st_size
                if stat.S_ISDIR(status.st_mode):
                    folders.append((entry.path, is_own))
                    taken = 0
                if is_own and not folder_own:
                    around.add(folder)
                elif not is_own and size + taken <= COPIED and os.access(entry.path, os.W_OK):
                    size += taken
                    theirs.add(entry.path)
                    around.add(folder)
        if looked > LOOKED_AT:
            break
    for path in around:
        theirs.update([path, *map(str, Path(path).parents)])
    modes = {}
    for path in sorted(theirs):
        with contextlib.suppress(FileNotFoundError):  # somebody has removed it
            modes[path] = _own_mode(path)
    return modes


def _own_mode(path):
    may = [os.access(path, how) for how in (os.R_OK, os.W_OK, os.X_OK)]
    rest = stat.S_IMODE(os.lstat(path).st_mode) & ~stat.S_IRWXU
    return rest | may[0] * stat.S_IRUSR | may[1] * stat.S_IWUSR | may[2] * stat.S_IXUSR


def _copy(paths, covered, upper):
    """Copy what of ``paths`` {path: mode} lies below ``covered``; of a folder not its content."""
    made = []
    for path, mode in paths.items():
        if path == covered or not is_below(path, [covered]):
            continue
        to = os.path.join(upper, os.path.relpath(path, covered))
        try:
            if os.path.islink(path):
                os.symlink(os.readlink(path), to)
                continue
            os.mkdir(to) if os.path.isdir(path) else shutil.copyfile(path, to)
            made.append((to, mode, os.stat(path)))
        except OSError:  # it is gone, or cannot be read, or the disk is full
            with contextlib.suppress(OSError):
                os.unlink(to)
    for to, mode, status in reversed(made):  # a folder when it is filled
        os.utime(to, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.chmod(to, mode)


def _lay(covered, places, as_user, theirs):
    """Lay an overlay over a folder; its changes lie in the first of ``places`` that can hold them.

    What of ``theirs`` lies below it is copied there before. Returns the error if none can.
    """
    options = ["userxattr"] if as_user else ["redirect_dir=on"]  # the latter: rename of folders
    try:
        status = os.stat(covered)
    except FileNotFoundError as error:  # somebody has removed it since it was found
        return error
    for place in places:
        upper, work = f"{place}/upper", f"{place}/work"
        for new in (place, upper, work):
            os.mkdir(new)
        os.chmod(upper, stat.S_IMODE(status.st_mode))
        if not as_user:
            os.chown(upper, status.st_uid, status.st_gid)
        _copy(theirs, covered, upper)
        layers = [f"lowerdir={_escaped(covered)}", f"upperdir={upper}", f"workdir={work}"]
        try:
            kernel.mount("overlay", covered, "overlay", options=",".join([*layers, *options]))
        except OSError as error:
            reason = OSError(error.errno, error.strerror, f"an overlay over {covered}")
            continue
        os.chmod(f"{work}/work", 0o700)  # so that the caller can remove it
        return None
    return reason


def _escaped(path):
    return re.sub(r"([\\:,])", r"\\\1", path)


def _mount_points():
    """Where something is mounted that may be covered."""
    points = {
        re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split(" ")[4])
        for line in lines(Path("/proc/self/mountinfo"))
    }
    return {point for point in points if not is_below(point, AS_IT_IS)}


def is_below(path, folders) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _to_cover(folder, mounted):
    """The largest folders from ``folder`` down in which nothing is mounted, its links aside."""
    inside = os.path.join(folder, "")
    if folder != "/" and not any(point.startswith(inside) for point in mounted):
        yield folder
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False) and not is_below(entry.path, AS_IT_IS):
                yield from _to_cover(entry.path, mounted)


def let_folders_be_renamed() -> None:
    """A folder that lies below an overlay is copied where the kernel does not rename it.

    Without a view the two names are on one file system, most often, and the script does not expect
    to be told that they are not.
    """
    for name in ("rename", "replace"):
        setattr(os, name, _by_copy(getattr(os, name)))


def _by_copy(real):
    @wraps(real)
    def renamed(src, dst, **folders):
        try:
            return real(src, dst, **folders)
        except OSError as error:
            if error.errno != errno.EXDEV or any(folder is not None for folder in folders.values()):
                raise
        is_folder = os.path.isdir(src) and not os.path.islink(src)
        if is_folder and os.path.isdir(dst):
            os.rmdir(dst)  # which raises unless it is empty, as the kernel does
        new = f"{os.fsdecode(dst)}.{os.getpid()}"
        if is_folder:
            shutil.copytree(src, new, symlinks=True)
        else:
            shutil.copy2(src, new, follow_symlinks=False)
        real(new, dst)
        shutil.rmtree(src) if is_folder else os.unlink(src)

    return renamed
