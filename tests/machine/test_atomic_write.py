"""Files written whole or not at all."""

import os
import random
import subprocess
import sys
import threading

from d2lmgpu.machine.atomic_write import save, save_first

CONTENT = random.Random(0).randbytes(300_001)


def names(folder):
    return sorted(os.listdir(folder))


def test_save_makes_the_folder_and_replaces_the_file(tmp_path):
    path = tmp_path / "new" / "file"
    save(path, b"old")
    save(path, CONTENT)
    assert path.read_bytes() == CONTENT and names(path.parent) == ["file"]


def test_write_that_fails_half_way_leaves_nothing(tmp_path):
    # A real limit of the operating system: the write stops after 100,000 bytes.
    script = """if True:
        import pathlib, resource, sys
        from d2lmgpu.machine.atomic_write import save
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            save(pathlib.Path(sys.argv[1]), bytes(300_000))
        except OSError as error:
            print(error.strerror)
    """
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "file"], capture_output=True, text=True
    )
    assert done.stdout == "File too large\n", done.stderr
    assert names(tmp_path) == []


def test_two_writers_at_once_do_not_meet(tmp_path, monkeypatch):
    """Both have written before either renames: each must still have its own file to rename."""
    both_written = threading.Barrier(2, timeout=30)
    replace = os.replace

    def replace_together(source, target):
        both_written.wait()
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_together)
    errors = []

    def writer():
        try:
            save(tmp_path / "file", CONTENT)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=writer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert (tmp_path / "file").read_bytes() == CONTENT and names(tmp_path) == ["file"]


def test_of_several_that_save_first_one_is_kept(tmp_path):
    path = tmp_path / "new" / "file"
    assert save_first(path, b"first") and not save_first(path, CONTENT)
    assert path.read_bytes() == b"first" and names(path.parent) == ["file"]
