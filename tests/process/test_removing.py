"""A folder is removed with all that workers, notebooks and learners have put in it."""

import os
import subprocess
import sys

import pytest
from open_folder import open_folder

from d2lmgpu.process.supervisor import remove


def nested(depth, name="d"):
    """So many folders in each other, below the working folder, and a file in the last."""
    folder = os.getcwd()
    for _ in range(depth):
        os.mkdir(name)
        os.chdir(name)
    open("last", "w").close()
    os.chdir(folder)


@pytest.mark.parametrize("depth, name", [(3, "d"), (3000, "d"), (60, "n" * 250)])
def test_however_deep_it_is(tmp_path, monkeypatch, depth, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    nested(depth, name)
    monkeypatch.chdir(tmp_path)
    remove(folder)
    assert not folder.exists()


def closed(folder, mode):
    for path in ("a/b/c", "a/d"):
        (folder / path).mkdir(parents=True)
        (folder / path / "file").touch()
    for path in ("a/b/c", "a/b", "a/d", "a", ""):
        (folder / path).chmod(mode)


REMOVES = "import sys; from d2lmgpu.process.supervisor import remove; remove(sys.argv[1])"
OTHER = {"user": 64_321, "group": 64_321, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100, 0o500, 0o300])
def test_what_its_owner_has_closed(mode):
    with open_folder("removing") as place:
        folder = place / "folder"
        folder.mkdir()
        closed(folder, mode)
        if OTHER:  # root may do all: so somebody else
            subprocess.run(["chown", "-R", "64321:64321", place], check=True)
        subprocess.run([sys.executable, "-c", REMOVES, folder], check=True, **OTHER)
        assert not folder.exists()


@pytest.mark.parametrize("where", ["top", "top/deep/er"])
def test_what_links_lead_to_stays(tmp_path, where):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / where / "link").symlink_to(kept)
    os.mkfifo(tmp_path / where / "pipe")
    remove(tmp_path / "top")
    assert not (tmp_path / "top").exists() and (kept / "file").exists()


def test_of_a_link_nothing_is_removed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    remove(tmp_path / "link")
    remove(tmp_path / "nothing")
    assert (tmp_path / "kept").exists() and (tmp_path / "link").is_symlink()
