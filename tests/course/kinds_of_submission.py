"""Kinds of notebooks that learners hand in, and the points that each has to get.

``KINDS`` is ``{name: (points question by question, function that writes it to a folder)}``: most
are right and come in another form than was asked for, some are wrong, none wants to harm.
"""

import json
import os

import jupytext
import nbformat
from exercise_parts import solved
from grading import COPIED, LEAVES, PART, SOLUTIONS, code

ALL, NONE = [1, 1, 1], [0, 0, 0]
COMBINE = SOLUTIONS["combine"]
KINDS = {}


def kind(points):
    """A decorator: the function changes a notebook in which all is solved, or returns another."""

    def register(function):
        name = function.__name__.replace("_", "-")

        def write(folder):
            notebook = solved(PART, SOLUTIONS)
            changed = function(notebook)
            nbformat.write(changed or notebook, folder / f"{name}.ipynb")

        KINDS[name] = points, write
        return function

    return register


def as_file(points, suffix=".ipynb"):
    """A decorator: the function makes the file's bytes of a notebook in which all is solved."""

    def register(function):
        name = function.__name__.replace("_", "-")

        def write(folder):
            (folder / f"{name}{suffix}").write_bytes(function(solved(PART, SOLUTIONS)))

        KINDS[name] = points, write
        return function

    return register


def given(notebook):
    """``(place, question)`` of each cell that was given for an answer, the last first."""
    for place, cell in reversed(list(enumerate(notebook.cells))):
        for name in cell.metadata.get("otter", {}).get("tests", []):
            yield place, name


def place_of(notebook, question):
    return next(place for place, name in given(notebook) if name == question)


# Where the answer stands.


@kind(ALL)
def as_asked(notebook):
    pass


@kind(ALL)
def in_new_cells_below(notebook):
    notebook = solved(PART, {})
    for place, name in given(notebook):
        notebook.cells.insert(place + 1, code(SOLUTIONS[name]))
    return notebook


@kind(ALL)
def in_new_cells_below_the_checks(notebook):
    notebook = solved(PART, {})
    for place, name in given(notebook):
        check = f'exercises.check("{name}", {SOLUTIONS[name].split("(")[0].split()[1]})'
        notebook.cells[place + 2 : place + 2] = [code(SOLUTIONS[name]), code(check)]
    return notebook


@kind(ALL)
def all_in_one_cell_at_the_end(notebook):
    notebook = solved(PART, {})
    notebook.cells.append(code("\n\n".join(SOLUTIONS.values())))
    return notebook


@kind(ALL)
def above_the_given_cells_which_are_gone(notebook):
    cells = [cell for cell in solved(PART, {}).cells if not cell.metadata.get("otter")]
    cells[2:2] = [code(solution) for solution in SOLUTIONS.values()]
    notebook.cells = cells


@kind(ALL)
def split_in_two_cells(notebook):
    place = place_of(notebook, "combine")
    notebook.cells[place].source = "def combine(means, sizes):\n    return weighted(means, sizes)"
    notebook.cells.insert(place, code(COMBINE.replace("combine", "weighted")))


@kind(ALL)
def with_a_helper_below(notebook):
    place = place_of(notebook, "combine")
    notebook.cells[place].source = "def combine(means, sizes):\n    return weighted(means, sizes)"
    notebook.cells.insert(place + 1, code(COMBINE.replace("combine", "weighted")))


@kind(ALL)
def with_a_helper_at_the_end(notebook):
    place = place_of(notebook, "combine")
    notebook.cells[place].source = "def combine(means, sizes):\n    return weighted(means, sizes)"
    notebook.cells.append(code(COMBINE.replace("combine", "weighted")))


@kind(ALL)
def in_the_cell_that_checks(notebook):
    notebook.cells[place_of(notebook, "combine")].source = "# see below"
    for cell in notebook.cells:
        if cell.source.startswith('exercises.check("combine"'):
            cell.source = f"{COMBINE}\n\n{cell.source}"


@kind(ALL)
def under_another_name(notebook):
    notebook.cells[place_of(notebook, "combine")].source = COMBINE.replace("combine", "mine")
    for cell in notebook.cells:
        cell.source = cell.source.replace('"combine", combine', '"combine", mine')


@kind(ALL)
def checks_removed(notebook):
    notebook.cells = [cell for cell in notebook.cells if "exercises.check(" not in cell.source]


@kind(ALL)
def given_cell_twice(notebook):
    place = place_of(notebook, "combine")
    again = nbformat.from_dict(notebook.cells[place] | {"id": "again"})
    notebook.cells.insert(place, again)
    notebook.cells[place].source = "def combine(means, sizes):\n    ..."


@kind(ALL)
def cells_moved_in_another_order(notebook):
    notebook.cells[2:] = [*notebook.cells[-1:1:-1]]


# What the answer is.


@kind(ALL)
def a_lambda(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[place].source = "port_of_0 = lambda k, num_bytes: 2 * (k - 1) * num_bytes"


@kind(ALL)
def a_partial(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[place].source = (
        "from functools import partial\n"
        "def port(ways, k, num_bytes):\n    return ways * (k - 1) * num_bytes\n"
        "port_of_0 = partial(port, 2)"
    )


@kind(ALL)
def an_object_that_is_called(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[place].source = (
        "class Port:\n"
        "    def __call__(self, k, num_bytes):\n        return 2 * (k - 1) * num_bytes\n"
        "port_of_0 = Port()"
    )


@kind(ALL)
def with_a_dataclass(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[place].source = (
        "from dataclasses import dataclass\n@dataclass\nclass Ways:\n    number: int = 2\n"
        "def port_of_0(k, num_bytes):\n    return Ways().number * (k - 1) * num_bytes"
    )


@kind(ALL)
def with_a_global_that_is_set_below(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[
        place
    ].source = "def port_of_0(k, num_bytes):\n    return WAYS * (k - 1) * num_bytes"
    notebook.cells.insert(place + 1, code("WAYS = 2"))


@kind(ALL)
def with_a_large_table(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[place].source = (
        "table = np.arange(2_000_000) * 2\n"
        "def port_of_0(k, num_bytes):\n    return int(table[k - 1]) * num_bytes"
    )


@kind(ALL)
def with_a_module_that_a_cell_writes(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[
        place
    ].source = "import ways\ndef port_of_0(k, num_bytes):\n    return ways.number(k) * num_bytes"
    source = "%%writefile ways.py\ndef number(k):\n    return 2 * (k - 1)"
    notebook.cells.insert(place, code(source))


@kind(ALL)
def under_a_magic_that_times(notebook):
    place = place_of(notebook, "combine")
    notebook.cells[place].source = f"%%time\n{COMBINE}"


@kind(ALL)
def under_a_magic_that_hides_output(notebook):
    place = place_of(notebook, "combine")
    notebook.cells[place].source = f"%%capture\n{COMBINE}"


@kind([0, 1, 1])
def one_is_not_solved(notebook):
    return solved(PART, {name: SOLUTIONS[name] for name in SOLUTIONS if name != "combine"})


@kind(NONE)
def nothing_is_solved(notebook):
    return solved(PART, {})


@kind([1, 1, 0])
def fits_the_visible_cases_only(notebook):
    return solved(PART, SOLUTIONS | {"naive-port": COPIED})


@kind([0, 1, 1])
def a_function_without_end(notebook):
    endless = "def combine(means, sizes):\n    while True:\n        pass"
    return solved(PART, SOLUTIONS | {"combine": endless})


@kind([0, 1, 1])
def a_function_that_wants_all_memory(notebook):
    huge = "def combine(means, sizes):\n    return np.ones(10**11)"
    return solved(PART, SOLUTIONS | {"combine": huge})


@kind([0, 1, 1])
def a_function_that_prints_without_end(notebook):
    loud = "def combine(means, sizes):\n    while True:\n        print('debug ' * 10_000)"
    return solved(PART, SOLUTIONS | {"combine": loud})


@kind([0, 1, 1])
def a_function_that_raises(notebook):
    return solved(PART, SOLUTIONS | {"combine": "def combine(means, sizes):\n    return 1 / 0"})


@kind([0, 1, 1])
def a_function_without_syntax(notebook):
    return solved(PART, SOLUTIONS | {"combine": "def combine(means, sizes:\n    pass"})


@kind([0, 1, 1])
def a_function_that_calls_itself_without_end(notebook):
    recursive = "def combine(means, sizes):\n    return combine(means, sizes)"
    return solved(PART, SOLUTIONS | {"combine": recursive})


# What other cells do.


def beside(points=ALL, end=False):
    """A decorator: the function returns the source of a cell at the beginning, or at the end."""

    def register(function):
        def insert(notebook):
            notebook.cells.insert(len(notebook.cells) if end else 1, code(function()))

        insert.__name__ = function.__name__
        return kind(points)(insert)

    return register


@beside()
def changes_the_folder():
    return "import tempfile\n%cd {tempfile.mkdtemp()}"


@beside()
def works_in_a_folder_that_it_removes():
    return "import os, tempfile\nname = tempfile.mkdtemp()\nos.chdir(name)\nos.rmdir(name)"


@beside()
def empties_the_path_of_imports():
    return "import numpy, sys\nfrom d2lmgpu.course import exercises\nsys.path.clear()"


@beside()
def empties_the_environment():
    return "import os\nos.environ.clear()"


@beside()
def raises():
    return "1 / 0"


@beside()
def asks_for_input():
    return "name = input('Your name? ')"


@beside()
def has_no_end():
    return "while True:\n    pass"


@beside()
def prints_without_end():
    return "while True:\n    print('debug ' * 10_000)"


@beside()
def prints_without_end_by_a_command():
    return "!yes"


@beside()
def shows_a_large_result():
    return "'x' * 50_000_000"


@beside()
def wants_all_memory():
    return "import numpy\nones = numpy.ones(10**11)"


@beside()
def fills_a_list_without_end():
    return "many = []\nwhile True:\n    many.append(bytearray(1 << 26))"


@beside()
def leaves_processes():
    return LEAVES


@beside()
def leaves_a_thread():
    return "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"


@beside()
def ends_python_by_sys_exit():
    return "import sys\nsys.exit()"


@beside(end=True)
def ends_the_session_by_exit():
    return "exit()"


@beside(end=True)
def empties_its_names():
    return "%reset -f"


@beside(end=True)
def uses_a_name_again():
    return "combine = replicate = port_of_0 = 3"


@beside(end=True)
def has_an_unfinished_version_at_the_end():
    return "def combine(means, sizes):\n    return sum(means)"


@beside(end=True)
def has_an_own_list_of_exercises():
    return "exercises = ['combine', 'replicate']"


@beside()
def awaits():
    return "import asyncio\nawait asyncio.sleep(0)"


@beside()
def draws():
    return "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


@beside()
def times_and_reloads():
    return "%load_ext autoreload\n%autoreload 2\n%timeit -n1 -r1 1 + 1"


@beside()
def is_another_language():
    return "%%bash\necho hello"


@beside()
def treats_warnings_as_errors():
    return (
        "import warnings\nimport numpy\nwarnings.simplefilter('error')\nnumpy.seterr(all='raise')"
    )


@beside()
def has_an_alarm_of_its_own():
    return "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.alarm(1)"


@beside()
def prints_to_a_file():
    return "import sys\nsys.stdout = open('log.txt', 'w')"


@beside(NONE)
def ends_its_kernel():
    return "import os\nos._exit(1)"


@beside(NONE)
def crashes_its_kernel():
    return "import ctypes\nctypes.string_at(0)"


# How the notebook is written.


@kind(ALL)
def cells_without_metadata(notebook):
    for cell in notebook.cells:
        cell.metadata.clear()


@kind(ALL)
def a_kernel_of_conda(notebook):
    notebook.metadata.kernelspec = {
        "name": "conda-env-course-py",
        "display_name": "Python [conda env:course]",
        "language": "python",
    }


@kind(ALL)
def a_kernel_of_an_editor(notebook):
    notebook.metadata.kernelspec = {"name": ".venv", "display_name": ".venv (3.12.4)"}


@kind(ALL)
def a_kernel_that_calls_itself_r(notebook):
    notebook.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}


@kind(ALL)
def no_kernel(notebook):
    notebook.metadata.clear()


@kind(ALL)
def ids_twice(notebook):
    for cell in notebook.cells:
        cell.id = "same"


@kind(ALL)
def an_older_format(notebook):
    notebook.nbformat_minor = 2
    for cell in notebook.cells:
        cell.pop("id", None)


@kind(ALL)
def a_thousand_cells_more(notebook):
    notebook.cells[1:1] = [code(f"x = {number}") for number in range(1000)]


@kind(ALL)
def letters_of_all_kinds(notebook):
    notebook.cells.insert(1, code("größe = '日本語 🙂'\nprint(größe)"))


@kind(ALL)
def large_outputs_that_were_stored(notebook):
    output = nbformat.v4.new_output("stream", text="x" * 5_000_000)
    notebook.cells.insert(1, code("'x'"))
    notebook.cells[1].outputs = [output]


@kind(NONE)
def no_cells(notebook):
    return nbformat.v4.new_notebook()


@as_file(ALL)
def format_3(notebook):
    return nbformat.writes(nbformat.convert(notebook, 3), version=3).encode()


@as_file(ALL)
def with_lines_of_windows(notebook):
    return nbformat.writes(notebook).replace("\n", "\r\n").encode()


@as_file(NONE)
def with_a_byte_order_mark(notebook):
    return nbformat.writes(notebook).encode("utf-8-sig")


@as_file(NONE)
def in_utf_16(notebook):
    return nbformat.writes(notebook).encode("utf-16")


@as_file(NONE)
def with_marks_of_a_merge(notebook):
    return nbformat.writes(notebook).replace("\n", "\n<<<<<<< HEAD\n", 1).encode()


@as_file(NONE)
def cut_off(notebook):
    return nbformat.writes(notebook).encode()[:2000]


@as_file(NONE)
def empty(notebook):
    return b""


@as_file(NONE)
def another_document(notebook):
    return b"%PDF-1.7 what was printed"


@as_file(NONE)
def json_but_no_notebook(notebook):
    return json.dumps({"name": "value"}).encode()


@as_file(NONE)
def nested_a_million_times(notebook):
    return b"[" * 1_000_000


@as_file(ALL, ".py")
def a_script(notebook):
    return jupytext.writes(notebook, "py:percent").encode()


def with_files(points, **files):
    """Register a folder: all of it is one learner's."""

    def register(function):
        name = function.__name__.replace("_", "-")

        def write(folder):
            own = folder / name
            own.mkdir()
            notebook = solved(PART, SOLUTIONS)
            function(notebook)
            nbformat.write(notebook, own / "foundations.ipynb")
            for path, content in files.items():
                place = own / path.replace("__", ".")
                os.makedirs(place.parent, exist_ok=True)
                place.write_text(content)

        KINDS[name] = points, write
        return function

    return register


@with_files(ALL, ways__py="def number(k):\n    return 2 * (k - 1)\n")
def with_a_module_beside(notebook):
    place = place_of(notebook, "naive-port")
    notebook.cells[
        place
    ].source = "import ways\ndef port_of_0(k, num_bytes):\n    return ways.number(k) * num_bytes"


@with_files(ALL, random__py="print('mine')\n")
def with_a_module_named_as_one_of_python_s(notebook):
    pass


@with_files(ALL, **{"my-predictions__csv": "name\n"})
def with_its_table(notebook):
    pass
