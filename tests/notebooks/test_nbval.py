"""nbval does compare: a stored output that is wrong fails, in a small notebook and in a chapter.

And what it has run is what the book would have made of it.
"""

import math
import os
import re
import shutil
import socket
import subprocess
import sys

import nbformat
import pytest
from chapter_cache import ChapterCache
from jupyter_kernels import TRANSPORT, AsyncKernelManager, KernelManager
from nbclient import NotebookClient
from nbformat import v4, write
from notebooks import ROOT, code_cells, read, tags
from soaking import sample

CONFTEST = """
import sys
from pathlib import Path

sys.path.append({tools!r})
import chapter_cache, nbval_plugins


def pytest_configure(config):
    config.pluginmanager.register(nbval_plugins.{plugin}(chapter_cache.ChapterCache(Path({root!r}))))
"""


def nbval(notebook, path, *options):
    """The outcome of each cell of ``notebook`` at ``path``, with the settings of the chapters."""
    write(notebook, path)
    shutil.copy(ROOT / "tests" / "notebooks" / "sanitize.cfg", path.parent)
    options = [
        *options,
        "-v",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        path.parent,
        "-c",
        "/dev/null",
    ]
    options += ["--nbval", "--nbval-sanitize-with", path.parent / "sanitize.cfg"]
    command = [sys.executable, "-m", "pytest", *options, path]
    env = os.environ | {"D2LMGPU_PROFILE": "test", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=path.parent, env=env, stdout=subprocess.PIPE, text=True)
    return re.findall(r"::Cell \d+ (PASSED|FAILED)", done.stdout)


def checked_cell(source, text):
    cell = v4.new_code_cell(source, execution_count=1)
    cell.metadata["tags"] = ["nbval-check-output", "keep_output"]
    cell.outputs = [v4.new_output("stream", text=text)]
    return cell


def test_devices_may_have_other_names_and_numbers_may_not_differ(tmp_path):
    texts = ["w on cpu:0 2\n", "w on cuda:1 2\n", "w on gpu(1) 2\n", "w on cpu:0 3\n"]
    cells = [checked_cell("print('w on cpu:0', 1 + 1)", text) for text in texts]
    outcomes = nbval(v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    assert outcomes == ["PASSED", "PASSED", "PASSED", "FAILED"]


def test_chapter_with_a_wrong_output_fails(tmp_path):
    """The first chapter up to its first checked cell, as it is, and that cell once more, wrong."""
    chapter = read(ROOT / "chapters" / "foundations" / "data-parallelism.ipynb")
    checked = next(cell for cell in code_cells(chapter) if "nbval-check-output" in tags(cell))
    chapter.cells = chapter.cells[: chapter.cells.index(checked) + 1]
    chapter.cells.append(checked_cell(checked.source, "something else\n"))
    *as_it_is, wrong = nbval(chapter, tmp_path / "chapter.ipynb")
    assert len(as_it_is) == len(code_cells(chapter)) - 1
    assert set(as_it_is) == {"PASSED"} and wrong == "FAILED"


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
PUTS_OUT = [
    "import sys, time\nfrom IPython.display import HTML, clear_output, display",
    "print('one')\ndisplay(HTML('<b>two</b>'))\nprint('three')\nprint('four', file=sys.stderr)",
    "print('gone')\nclear_output()\nprint('stays')\n1 + 1",
    "shown = display('before', display_id=True)",
    "shown.update('after')",
    "import threading\nthreading.Timer(0.5, print, ['late']).start()",
    "time.sleep(1)",
]


def outputs(notebook):
    """Those of each code cell. nbval leaves no history, so its numbers are all 1."""
    each = [cell.outputs for cell in code_cells(notebook)]
    return [[{**output, "execution_count": None} for output in cell] for cell in each]


@pytest.fixture
def kept(tmp_path):
    """What is kept of chapters in a folder of a test's own."""
    (tmp_path / "requirements.txt").touch()
    kept = ChapterCache(tmp_path)
    kept.begin()
    return kept


def use(plugin, kept):
    """Have nbval, in the folder of what is ``kept``, use a plugin of ``tools/nbval_plugins.py``."""
    text = CONFTEST.format(tools=str(ROOT / "tools"), plugin=plugin, root=str(kept.root))
    (kept.root / "conftest.py").write_text(text)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_nbval_has_run_is_what_the_book_would_have_made_of_it(tmp_path, kept, wrong):
    cells = [v4.new_code_cell(source) for source in PUTS_OUT]
    cells += [v4.new_markdown_cell("Text."), checked_cell("print(2)", "3\n" if wrong else "2\n")]
    use("Executed", kept)
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    for cell in cells[:-2]:
        cell.metadata["tags"] = ["nbval-ignore-output"]
    outcomes = nbval(notebook, tmp_path / "small.ipynb", "--confcutdir", tmp_path)
    assert outcomes == ["PASSED"] * len(PUTS_OUT) + ["FAILED" if wrong else "PASSED"]
    record = kept.find(notebook)
    if wrong:
        assert record is None
        return
    _, merged = kept.cache.merge_match_into_notebook(notebook)
    executed = {"kernel_manager_class": AsyncKernelManager}
    by_nbclient = NotebookClient(read(tmp_path / "small.ipynb"), **executed).execute()
    assert outputs(merged) == outputs(by_nbclient)
    assert merged.metadata.language_info == by_nbclient.metadata.language_info
    assert record.data["execution_seconds"] > 1 and not kept.is_stale(record)


def test_a_chapter_without_a_kernel_costs_that_chapter(tmp_path, kept):
    """The cells of the next one are run, from its first one on."""
    use("Executed", kept)
    unstarted = v4.new_notebook(cells=[v4.new_code_cell("1")])
    unstarted.metadata["kernelspec"] = KERNEL | {"name": "none-of-this-name"}
    write(unstarted, tmp_path / "before.ipynb")
    cells = [checked_cell("x = 1\nprint(x)", "1\n"), checked_cell("print(x + 1)", "2\n")]
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    options = [tmp_path / "before.ipynb", "--confcutdir", tmp_path]
    assert nbval(notebook, tmp_path / "small.ipynb", *options) == ["PASSED", "PASSED"]
    assert kept.find(notebook) and not kept.find(unstarted)


@pytest.mark.skipif(TRANSPORT == "tcp", reason="elsewhere a kernel has ports")
def test_a_kernel_answers_where_another_process_took_a_port_before_it_could():
    """On such a port of ``iopub`` it would live on, and answer nobody."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        manager = KernelManager(kernel_name="python3", cache_ports=False)
        manager.iopub_port = taken.getsockname()[1]
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=30)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def test_what_the_book_has_run_is_compared_and_not_run_again(tmp_path, kept):
    """Its kept outputs count, not those of another run; a cell that has changed is run."""
    runs = "open('runs', 'a').write('.')\n"
    cells = [checked_cell(f"{runs}print({i})", f"{i}\n") for i in range(2)]
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("Text."), *cells])
    notebook.metadata["kernelspec"] = KERNEL
    cells[0].outputs[0].text = "put out by the book\n"
    path = tmp_path / "one.ipynb"
    (tmp_path / "read.txt").write_text("as it was")
    kept.noted.write_text(f"{tmp_path / 'read.txt'}\n")
    kept.put(notebook, path, 1.0, math.inf)
    use("Compared", kept)
    assert nbval(notebook, path, "--confcutdir", tmp_path) == ["PASSED", "PASSED"]
    cells[0].outputs[0].text = "0\n"
    assert nbval(notebook, path, "--confcutdir", tmp_path) == ["FAILED", "PASSED"]
    assert not (tmp_path / "runs").exists()
    (tmp_path / "read.txt").write_text("changed")
    assert nbval(notebook, path, "--confcutdir", tmp_path) == ["PASSED", "PASSED"]
    assert (tmp_path / "runs").read_text() == ".."
    (tmp_path / "read.txt").write_text("as it was")
    cells[1].source += "  # changed"
    assert nbval(notebook, path, "--confcutdir", tmp_path) == ["PASSED", "PASSED"]
    assert (tmp_path / "runs").read_text() == "...."


def test_the_workers_of_xdist_do_not_run_it_again_either(tmp_path):
    """With the chapters' own conftest.py, whose profile they inherit, and output in two pieces."""
    names = ["chapters/conftest.py", "tests/programs.py", "tests/notebooks/sanitize.cfg"]
    tools = ["book", "nbval_plugins", "chapter_cache", "chapter_facts"]
    tools += ["jupyter_kernels", "dependencies", "file_notes/sitecustomize"]
    for name in [*names, *(f"tools/{tool}.py" for tool in tools), "requirements.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    notebook = v4.new_notebook(cells=[checked_cell("open('runs', 'w')\nprint(12)", "12\n")])
    notebook.metadata["kernelspec"] = KERNEL
    write(notebook, tmp_path / "chapters" / "one.ipynb")
    notebook.cells[0].outputs = [v4.new_output("stream", text=text) for text in ("1", "2\n")]
    env = {name: value for name, value in os.environ.items() if not name.startswith("D2LMGPU_")}
    env |= {"PYTHONPATH": "tools:tests", "PYTEST_ADDOPTS": ""}
    options = {"cwd": tmp_path, "env": env, "text": True, "capture_output": True}
    made = (
        "import math, nbformat, sys; from pathlib import Path; "
        "from chapter_cache import ChapterCache;"
        "kept = ChapterCache(Path.cwd()); kept.begin();"
        "kept.put(nbformat.reads(sys.stdin.read(), 4), Path('chapters/one.ipynb'), 1.0, math.inf)"
    )
    command = [sys.executable, "-c", made]
    subprocess.run(command, check=True, input=nbformat.writes(notebook), **options)
    command = [sys.executable, "-m", "pytest", "--nbval", "--executed", "chapters", "-n", "2"]
    done = subprocess.run([*command, "-c", "/dev/null", "--rootdir", "."], **options)
    assert "1 passed" in done.stdout, done.stdout
    assert not (tmp_path / "chapters" / "runs").exists()


@pytest.mark.parametrize(
    "how",
    sample(1, [["-n", "3", "--dist", "load"], ["-n", "2"], ["-n", "2", "--dist", "worksteal"]]),
)
def test_the_cells_of_a_chapter_stay_together_however_many_workers_there_are(tmp_path, how):
    chapters, settings = tmp_path / "chapters", tmp_path / "tests" / "notebooks"
    chapters.mkdir()
    settings.mkdir(parents=True)
    shutil.copy(ROOT / "chapters" / "conftest.py", chapters)
    shutil.copy(ROOT / "tests" / "notebooks" / "sanitize.cfg", settings)
    for name in ("tests/programs.py", "tools/jupyter_kernels.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("one", "two"):
        cells = [checked_cell("x = 1\nprint(x)", "1\n")]
        cells += [checked_cell("x += 1\nprint(x)", f"{i}\n") for i in range(2, 10)]
        app = "from ipykernel.kernelapp import IPKernelApp as App\nprint(App.instance().transport)"
        cells.append(checked_cell(app, f"{TRANSPORT}\n"))
        for number, cell in enumerate(cells, start=1):
            cell.execution_count = number
        write(
            v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL}),
            chapters / f"{name}.ipynb",
        )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null"]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, "--nbval", *how, chapters],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTEST_ADDOPTS": "", "PYTHONPATH": "tests"},
        cwd=tmp_path,
    )
    assert "20 passed" in done.stdout, done.stdout
