"""Whatever a script does to files, the reader's stay as they were: in a view, or refused.

Each deed of ``deeds`` is done for real, by a process that is protected as a watched script is: as
this account and, for root, as an ordinary one.
"""

import ctypes
import errno
import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import pytest
import safetensors.torch  # noqa: F401  (before any fork: what deeds need is imported)
from deeds import DEEDS, do, made, snapshot
from without import without

from d2lmgpu.watch.files import NONE, REFUSED, VIEW, kernel, protection, view
from d2lmgpu.watch.files.diversion import divert
from d2lmgpu.watch.files.view import let_folders_be_renamed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="views and Landlock are Linux's")
PR_SET_DUMPABLE = 4
# Modes and times, which Landlock does not hold, where Python's own function does not change them.
NOT_REFUSED = ["chmod by another program", "touch by another program", "fchmod"]
ORDINARY = 64_321  # an account without a name
GROUP = 64_322  # to which it belongs, too
# "shared": the ordinary one, below a folder of root's; what it works on is its group's, as on
# many a cluster.
ACCOUNTS = ["own", "ordinary", "shared"] if os.geteuid() == 0 else ["own"]


def in_a_child(function):
    """What ``function`` returns in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(function()).encode())
        except BaseException as error:
            os.write(writer, json.dumps(f"{type(error).__name__}: {error}").encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        report = json.loads(pipe.read())
    os.waitpid(child, 0)
    return report


@pytest.fixture(params=ACCOUNTS)
def account(request):
    return request.param


@pytest.fixture
def place(account):
    """A folder for the run, a home, and one for projects; the account's own."""
    top = Path(tempfile.mkdtemp(prefix="deeds-"))
    folder = top / "of" / "root" / "place" if account == "shared" else top
    folder.mkdir(parents=True, exist_ok=True)
    if account == "shared":
        top.chmod(0o755)
    for name in ("run", "home", "reader"):
        (folder / name).mkdir()
    give(folder, account)
    yield folder
    shutil.rmtree(top)


def give(folder, account):
    group = GROUP if account == "shared" else ORDINARY
    if account != "own":
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, ORDINARY, group, follow_symlinks=False)


def projects(place, account, deeds):
    """Make those of all ``deeds``."""
    for name in deeds:
        made(place / "reader", name)
    give(place / "reader", account)


def begin(place, account):
    """In a child: be the account, at home in ``place``."""
    if account != "own":
        os.setgroups([GROUP] if account == "shared" else [])
        os.setgid(ORDINARY)
        os.setuid(ORDINARY)
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # as after an exec: /proc/self is its
    os.environ["HOME"] = str(place / "home")
    os.chdir(place / "reader")
    tempfile.tempdir = str(place / "run")


def protected(place, account, deeds, calls=None, prepare=lambda: None):
    """In a child: do ``deeds``, protected as well as can be without the system's ``calls``."""

    def child():
        begin(place, account)
        if calls:
            without(calls)
        prepare()
        shield = protection(str(place / "run"), os.getcwd())
        if shield.kind != NONE:
            shield.enter(str(place / "run"))
            let_folders_be_renamed() if shield.kind == VIEW else divert(str(place / "run"))
        return shield.kind, shield.why, do(deeds, place / "reader") if shield.kind != NONE else {}

    projects(place, account, deeds)
    before = snapshot(place / "reader"), snapshot(place / "home")
    kind, why, raised = in_a_child(child)
    assert (snapshot(place / "reader"), snapshot(place / "home")) == before
    return kind, why, {name: text for name, text in raised.items() if text}


def test_in_a_view_all_may_be_done_and_the_files_are_as_they_were(place, account):
    assert protected(place, account, DEEDS) == (VIEW, "", {})


def test_each_deed_changes_something_where_nothing_is_protected(place, account):
    def child():
        begin(place, account)
        return do(DEEDS, place / "reader")

    def look():
        return {name: snapshot(place / "reader" / name) for name in DEEDS} | {
            "home": snapshot(place / "home")
        }

    projects(place, account, DEEDS)
    before = look()
    assert set(in_a_child(child).values()) == {None}
    assert [name for name, seen in look().items() if seen == before[name]] == []
    assert len(DEEDS) > 75


@pytest.mark.parametrize("mode, copied", [("rb", 0), ("r+b", 1 << 26)])
def test_a_large_file_is_read_where_it_lies(place, account, mode, copied):
    """And copied where it may be written to: the space that an overlay tells is of its changes."""
    data = place / "reader" / "data.bin"
    data.write_bytes(bytes(1 << 26))
    give(place, account)

    def space_taken():
        status = os.statvfs(data.parent)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def child():
        begin(place, account)
        shield = protection(str(place / "run"), os.getcwd())
        shield.enter(str(place / "run"))
        before = space_taken()
        with open(data, mode) as file:
            size = sum(len(part) for part in iter(lambda: file.read(1 << 24), b""))
        return shield.kind, size, space_taken() - before

    if account == "shared":  # what is another group's is copied before, up to COPIED bytes
        copied = 0
    assert in_a_child(child) == [VIEW, 1 << 26, copied]


@pytest.mark.parametrize("folder", ["/", "/run", "/sys/fs/cgroup", "/dev"])
def test_what_no_overlay_covers_takes_nothing(place, account, folder):
    def child():
        begin(place, account)
        protection(str(place / "run"), os.getcwd()).enter(str(place / "run"))
        try:
            os.mkdir(os.path.join(folder, "d2lmgpu-made"))
        except OSError as error:
            return error.errno

    assert in_a_child(child) in (errno.EROFS, errno.EACCES)
    assert not os.path.exists(os.path.join(folder, "d2lmgpu-made"))


@pytest.fixture
def shared_memory(account):
    """A project of the account's in shared memory, where some lay their data."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="d2lmgpu-deeds-"))
    give(folder, account)
    yield folder
    shutil.rmtree(folder)


IN_PLACES = ("rmtree", "rename a folder", "write", "append", "mmap", "torch.save", "a shell's >")


def done_in(folder, place, account, calls=None):
    """Do some deeds below ``folder``: the kind of protection, and what each raised."""

    def child():
        begin(place, account)
        os.chdir(folder)
        if calls:
            without(calls)
        shield = protection(str(place / "run"), os.getcwd())
        if shield.kind == NONE:
            return NONE, {}
        shield.enter(str(place / "run"))
        let_folders_be_renamed()
        return shield.kind, do({name: DEEDS[name] for name in IN_PLACES}, folder)

    for name in IN_PLACES:
        made(folder, name)
    give(folder, account)
    before = snapshot(folder)
    kind, raised = in_a_child(child)
    assert snapshot(folder) == before
    return kind, raised


def test_a_project_in_shared_memory_is_as_it_was(place, account, shared_memory):
    assert done_in(shared_memory, place, account) == (VIEW, dict.fromkeys(IN_PLACES))


@pytest.mark.parametrize(
    "call, number",
    [("unshare", errno.EPERM), ("mount", errno.ENODEV), ("mount_setattr", errno.ENOSYS)],
)
def test_without_a_view_nothing_runs_in_shared_memory(place, account, shared_memory, call, number):
    assert done_in(shared_memory, place, account, {call: number}) == (NONE, {})


def test_a_script_elsewhere_reads_shared_memory_and_changes_none_of_it(
    place, account, shared_memory
):
    (shared_memory / "data.txt").write_text("the reader's own")
    # Of a group's files only those around the script can be changed.
    give(shared_memory, "ordinary" if account == "shared" else account)
    before = snapshot(shared_memory)

    def child():
        begin(place, account)
        protection(str(place / "run"), os.getcwd()).enter(str(place / "run"))
        text = (shared_memory / "data.txt").read_text()
        shutil.rmtree(shared_memory)
        return text, shared_memory.exists()

    assert in_a_child(child) == ["the reader's own", False]
    assert snapshot(shared_memory) == before


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm"])
def test_places_for_everybody_take_new_files_which_go_with_the_view(place, account, folder):
    def child():
        begin(place, account)
        protection(str(place / "run"), os.getcwd()).enter(str(place / "run"))
        return tempfile.mkstemp(dir=folder)[1]

    name = in_a_child(child)
    assert name.startswith(f"{folder}/") and not os.path.exists(name)


def test_what_is_removed_while_a_view_is_made_costs_no_view(place, account, monkeypatch):
    """On a machine with something mounted below /tmp each folder there has its own overlay."""
    to_cover = view._to_cover

    def found_and_removed(*args):
        yield str(place / "removed")
        yield from to_cover(*args)

    monkeypatch.setattr(view, "_to_cover", found_and_removed)
    assert protected(place, account, DEEDS) == (VIEW, "", {})


@pytest.mark.needs("root")
@pytest.mark.parametrize("deed", ["rmtree", "write", "mmap"])
def test_in_a_chroot_the_view_is_one_of_its_files(tmp_path, deed):
    """As some systems make containers: there a namespace is entered at its own topmost folder."""
    other, project = tmp_path / "root", tmp_path / "work"
    other.mkdir()
    (tmp_path / "run").mkdir()
    made(project, deed)
    before = snapshot(project)

    def child():
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("/", str(other), flags=kernel.MS_BIND | kernel.MS_REC)
        os.chroot(other)
        os.chdir(project)
        shield = protection(str(tmp_path / "run"), os.getcwd())
        shield.enter(str(tmp_path / "run"))
        return shield.kind, do({deed: DEEDS[deed]}, project), other.joinpath("etc").exists()

    assert in_a_child(child) == [VIEW, {deed: None}, False]
    assert snapshot(project) == before


def test_sockets_of_other_programs_are_reached_below_run(place, account):
    if not os.access("/run", os.W_OK):
        pytest.skip("who may not write to /run has no socket there")
    path = tempfile.mktemp(prefix="d2lmgpu-", dir="/run")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        server.listen()

        def child():
            begin(place, account)
            protection(str(place / "run"), os.getcwd()).enter(str(place / "run"))
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
            return "connected"

        assert in_a_child(child) == "connected"
    os.unlink(path)


def test_where_there_is_no_view_linux_refuses_what_is_not_diverted(place, account):
    deeds = {name: deed for name, deed in DEEDS.items() if name not in NOT_REFUSED}
    kind, why, raised = protected(place, account, deeds, {"unshare": errno.EPERM})
    assert kind == REFUSED and os.strerror(errno.EPERM) in why
    assert "Permission denied" in raised["rename a folder"] and "write" not in raised


@pytest.mark.parametrize(
    "call, number",
    [
        ("unshare", errno.ENOSPC),
        ("mount", errno.EPERM),
        ("mount", errno.ENODEV),
        ("mount_setattr", errno.ENOSYS),
    ],
)
def test_why_there_is_no_view_is_the_system_s_reason(place, account, call, number):
    kind, why, _ = protected(place, account, {"rmtree": DEEDS["rmtree"]}, {call: number})
    assert kind == REFUSED and os.strerror(number) in why


def test_where_overlays_are_missing_linux_refuses_what_is_not_diverted(place, account):
    real = kernel.mount

    def without_overlays(source, target, kind=None, *rest, **named):
        if kind == "overlay":
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), "mount")
        return real(source, target, kind, *rest, **named)

    def prepare():
        kernel.mount = without_overlays

    deeds = {name: DEEDS[name] for name in ("rmtree", "rename a folder", "write")}
    kind, why, _ = protected(place, account, deeds, prepare=prepare)
    assert kind == REFUSED and f"{os.strerror(errno.ENODEV)} (an overlay over " in why


def test_without_both_there_is_no_protection_and_both_reasons_are_named(place, account):
    calls = {"unshare": errno.EPERM, "landlock": errno.ENOSYS}
    kind, why, _ = protected(place, account, {}, calls)
    assert kind == NONE and all(os.strerror(number) in why for number in calls.values())
