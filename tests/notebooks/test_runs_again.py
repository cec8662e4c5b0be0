"""What a chapter depends on is what it and its workers read, and what these may import.

The oracle of a real chapter is in tests/book/test_what_changes.py: here are small ones.
"""

import os
import shutil
import subprocess
import sys
import time

import pytest
from dependencies import LOG, NOTING, dependencies, digests, environment, noted
from notebooks import ROOT

FILES = {
    "d2lmgpu/__init__.py": "",
    "d2lmgpu/used.py": '"""Of d2lmgpu.told."""\nfrom d2lmgpu import below\n',
    "d2lmgpu/below.py": "def later():\n    from d2lmgpu.room import deep\n",
    "d2lmgpu/room/__init__.py": "",
    "d2lmgpu/room/deep.py": "WORKER = ['-m', 'd2lmgpu.worker']\n",
    "d2lmgpu/worker.py": "import d2lmgpu.inside\n",
    "d2lmgpu/inside.py": "PROGRAM = 'alone.py'\n",
    "d2lmgpu/alone.py": "",
    "d2lmgpu/told.py": "",
    "d2lmgpu/other.py": "import d2lmgpu.used\n",
    "chapters/part/script.py": "import beside\n",
    "chapters/part/beside.py": "",
    "records/one.json": "{}",
    "records/two.json": "{}",
}


@pytest.fixture
def course(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(NOTING, tmp_path / "tools" / "file_notes")
    return tmp_path


READS = {
    "a file": ("open('../../records/one.json')", {"records/one.json"}),
    "a file that is not there": (
        "try: open('no.json')\nexcept OSError: 0",
        {"chapters/part/no.json"},
    ),
    "a folder": ("import os; os.listdir('../../records')", {"records"}),
    "a folder, by a pattern": (
        "from pathlib import Path; list(Path('../../records').glob('*.json'))",
        {"records"},
    ),
    "a module": ("import d2lmgpu.told", {"d2lmgpu/__init__.py", "d2lmgpu/told.py"}),
    "in a process that it starts": (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import d2lmgpu.alone'])",
        {"d2lmgpu/__init__.py", "d2lmgpu/alone.py"},
    ),
    "in a process that it forks": (
        "import os\nif not (child := os.fork()): open('../../records/two.json')\n"
        "else: os.waitpid(child, 0)",
        {"records/two.json"},
    ),
    "in one that is spawned": (
        "import multiprocessing as m; p = m.get_context('spawn').Process(target=open, "
        "args=('../../records/one.json',)); p.start(); p.join()",
        {"records/one.json"},
    ),
    "nothing that it writes": ("open('new', 'w').write('1')", set()),
    "nothing elsewhere": ("open('/etc/hostname')", set()),
}


@pytest.mark.parametrize("again", ["compiled", "compiled before"])
@pytest.mark.parametrize("what", READS)
def test_what_a_process_reads_is_noted(what, again, course):
    code, expected = READS[what]
    log = course / "log"
    for _ in range(2 if again == "compiled before" else 1):
        log.unlink(missing_ok=True)
        environ = environment(log)
        path = environ["PYTHONPATH"].replace(str(NOTING), str(course / "tools" / "file_notes"))
        environ = os.environ | {LOG: str(log), "PYTHONPATH": os.pathsep.join([path, str(course)])}
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=course / "chapters" / "part", env=environ, check=True)
    files = noted(log, course)
    assert {path for path in files if not path.startswith("tools/")} == expected
    assert not log.exists()


OF_WORKER = {"worker", "inside", "alone"}
OF_BELOW = {"below", "room/__init__", "room/deep"} | OF_WORKER
NAMED = {
    "import d2lmgpu.used": {"used"} | OF_BELOW,
    "from d2lmgpu import below": OF_BELOW,
    "command = 'python -m d2lmgpu.worker --fast'": OF_WORKER,
    "%time import d2lmgpu.worker": OF_WORKER,
    "import numpy": set(),
}


@pytest.mark.parametrize("code", NAMED)
def test_what_it_names_and_what_that_may_import_counts_too(code, course):
    chapter = course / "chapters" / "part" / "one.ipynb"
    files = dependencies(chapter, [code], set(), course) - {"d2lmgpu/__init__.py"}
    assert files == {f"d2lmgpu/{name}.py" for name in NAMED[code]}


def test_scripts_beside_it_count_with_what_they_import(course):
    chapter = course / "chapters" / "part" / "one.ipynb"
    code = "subprocess.run(['torchrun', 'script.py'])"
    assert dependencies(chapter, [code], {"records/one.json"}, course) == {
        "chapters/part/script.py",
        "chapters/part/beside.py",
        "records/one.json",
    }


@pytest.mark.parametrize("name", ["records/one.json", "records", "records/none.json"])
def test_a_change_is_seen(name, course):
    before = digests([name, "d2lmgpu/used.py"], course)
    assert digests(before, course) == before
    if name == "records":
        (course / "records" / "three.json").write_text("{}")
    else:
        (course / name).write_text("[1]")
    after = digests(before, course)
    assert {path for path in before if before[path] != after[path]} == {name}


def test_what_changed_while_the_chapter_ran_has_changed(course):
    began = time.time() + 60
    assert digests(["records/one.json"], course, began) == digests(["records/one.json"], course)
    os.utime(course / "records" / "one.json", (began + 1, began + 1))
    noted_then = digests(["records/one.json"], course, began)
    assert noted_then != digests(["records/one.json"], course)


def test_what_reading_leaves_in_a_folder_changes_nothing(course):
    """Python keeps compiled modules in it, Jupyter what was there before."""
    began = time.time() + 60
    before = digests(["d2lmgpu/room"], course, began)
    for name in ("__pycache__", ".ipynb_checkpoints"):
        (course / "d2lmgpu" / "room" / name).mkdir()
    os.utime(course / "d2lmgpu" / "room", (began + 1, began + 1))
    assert digests(["d2lmgpu/room"], course, began) == before
    began = time.time() - 60  # the modules in it are younger
    assert digests(["d2lmgpu/room"], course, began) != before


def test_the_real_workers_are_named():
    """Of the packages' own processes, those that note nothing: they run without site."""
    chapter = ROOT / "chapters" / "concise" / "pytorch.ipynb"
    files = dependencies(chapter, ["from d2lmgpu.launch import launch"], set(), ROOT)
    workers = ("ranks", "supervisor", "hosts/agent", "hosts/with_parent", "roles")
    assert {f"d2lmgpu/process/{name}.py" for name in workers} <= files
