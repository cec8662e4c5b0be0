"""A class is graded: everybody gets a row, whatever the others' notebooks do."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import psutil
import pytest
from exercise_parts import ROOT, solved
from grading import (
    ACCOUNTS,
    COPIED,
    LASTS,
    LEAVES,
    PART,
    SOLUTIONS,
    autograder,
    code,
    files_of,
    grade_program,
    grades,
    gradescope,
    gradescope_points,
    points,
    rows,
    submit,
)
from kinds_of_submission import KINDS
from processes import commands, left
from programs import program
from soaking import sample


def left_running():
    """What LEAVES has started and nobody has ended."""
    return [process for process, words in commands().items() if words == f"sleep {LASTS}"]


def test_a_class_is_graded(made, tmp_path):
    usual, endless = tmp_path / "usual", tmp_path / "endless"
    usual.mkdir()
    endless.mkdir()
    submit(usual, "all", SOLUTIONS)
    (usual / "broken.ipynb").write_text('{"cells": ')
    some = {"combine": SOLUTIONS["combine"], "naive-port": COPIED}
    submit(endless, "endless", some, LEAVES, "while True:\n    pass")
    table = grades(usual, made) | grades(endless, made, "--cell-seconds", "10")
    assert list(table["all.ipynb"]) == ["total", *sorted(SOLUTIONS), "remark"]
    assert {name: points(row) for name, row in table.items()} == {
        "all.ipynb": [1, 1, 1],
        "endless.ipynb": [1, 0, 0],
        "broken.ipynb": [0, 0, 0],
    }
    assert not table["all.ipynb"]["remark"]
    remark = "naive-port: right for the cases that the notebook shows, not for others"
    assert remark in table["endless.ipynb"]["remark"]
    assert "NotJSONError" in table["broken.ipynb"]["remark"]
    assert left_running() == []


@pytest.mark.soak
@pytest.mark.parametrize("account", ACCOUNTS, ids=" ".join)
def test_one_that_takes_too_long_is_ended_with_all_that_it_started(made, tmp_path, account):
    submit(tmp_path, "endless", SOLUTIONS, LEAVES, "while True:\n    pass")
    table = grades(tmp_path, made, "--notebook-seconds", "12", *account)
    assert table["endless.ipynb"]["remark"] == "ended after 12 seconds"
    assert left_running() == []


# In `make test` a sample of the kinds; `class_of_sixty.py` has them all.
SAMPLE = ["in-new-cells-below", "fits-the-visible-cases-only"]


def test_make_grade_and_gradescope_give_the_points_that_each_kind_has_to_get(made, tmp_path):
    compared(made, tmp_path, SAMPLE)


def compared(made, tmp_path, names, cell_seconds=60):
    """Write, grade and compare these kinds; returns the rows."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name in names:
        KINDS[name][1](folder)
    rows_of = {}
    for name, row in grades(folder, made, "--cell-seconds", str(cell_seconds)).items():
        rows_of[Path(Path(name).parts[0]).stem] = row
    assert set(rows_of) == set(names)
    expected = {name: KINDS[name][0] for name in names}
    assert {name: points(rows_of[name]) for name in names} == expected
    there = {}
    for path in folder.iterdir():
        if path.name != "grades":
            uploaded = tmp_path / "gradescope" / path.stem
            results = gradescope(files_of(path), made, uploaded, cell_seconds)
            there[path.stem] = gradescope_points(results)
    assert there == expected
    return rows_of


def test_what_gradescope_shows(made, tmp_path):
    """The public tests to everybody, the points not; the package is the zip's."""
    some = {"combine": SOLUTIONS["combine"], "naive-port": COPIED}
    where = "import d2lmgpu\nopen('where', 'w').write(d2lmgpu.__file__)"
    submit(tmp_path, "learner", some, where, "for device in range(2) print(device)")
    own = tmp_path / "d2lmgpu" / "course" / "exercises"  # handed in as well
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("check = lambda *_, **__: True")
    for package in own.parents[:2]:
        (package / "__init__.py").touch()
    uploaded = [tmp_path / "learner.ipynb", tmp_path / "d2lmgpu"]
    results = gradescope(uploaded, made, tmp_path / "autograder")
    submission = tmp_path / "autograder" / "submission"
    assert (submission / "where").read_text().startswith(f"{submission}/")
    public, *questions = results["tests"]
    assert public["visibility"] == "visible" and "score" not in public
    assert "combine results: All test cases passed!" in public["output"]
    assert "replicate: not yet." in public["output"]
    scores = {
        question["name"]: (question["score"], question["max_score"]) for question in questions
    }
    expected = {"combine": (1, 1), "replicate": (0, 1), "naive-port": (0, 1)}
    assert scores == dict.fromkeys(SOLUTIONS, (0, 1)) | expected
    assert all(question["visibility"] == "hidden" and question["output"] for question in questions)
    assert "naive-port: right for the cases" in results["output"]
    assert "cell 2 does not parse" in results["output"]


def test_the_zip_starts_as_gradescope_starts_it(made):
    with zipfile.ZipFile(autograder(made)) as file:
        assert {"setup.sh", "run_autograder", "course_grading.py"} <= set(file.namelist())
        started = file.read("run_autograder").decode()
        settings = json.loads(file.read("otter_config.json"))
    assert started.startswith("#!") and "/autograder/source/run_otter.py" in started
    assert settings["plugins"] == ["course_grading.Graded"]


def test_why_a_notebook_that_shows_correct_gets_no_point(made, tmp_path):
    """It was right when its cells ran in another order, or once."""
    notebook = solved(PART, SOLUTIONS)
    for cell in notebook.cells:
        if cell.source.startswith("def combine"):
            cell.source = "def combine(means, sizes):\n    return weighted(means, sizes)"
        if cell.source.startswith("exercises.check("):
            name = cell.source.split('"')[1]
            shown = {"text/plain": f"✓ The gradient is that …\n{name}: correct."}
            cell.outputs = [nbformat.v4.new_output("execute_result", shown, execution_count=1)]
    notebook.cells.insert(2, code("weighted = from_a_cell_that_is_gone"))
    nbformat.write(notebook, tmp_path / "learner.ipynb")
    (row,) = grades(tmp_path, made).values()
    assert points(row) == [0, 1, 1]
    begin = (
        "combine: correct in the notebook, but not if it is run from the top (✗ It raised NameError"
    )
    assert row["remark"].startswith(begin)
    assert "The first cell that failed: NameError: name 'from_a_cell_that_is_gone'" in row["remark"]


def test_of_each_question_without_a_point_is_said_what_was_wrong(made, tmp_path):
    """In the words of the cell in which a learner checks; in the row and in the text."""
    wrong = {
        "combine": "def combine(means, sizes):\n    return sum(means) / len(means)",
        "naive-port": COPIED,
        "replicate": "def replicate(params, k:\n    pass",
    }
    submit(tmp_path, "learner", wrong)
    (row,) = grades(tmp_path, made).values()
    (broken,) = (
        number
        for number, cell in enumerate(code_cells(tmp_path / "learner.ipynb"), 1)
        if cell.source == wrong["replicate"]
    )
    assert row["remark"].startswith(f"cell {broken} does not parse ")
    text = (tmp_path / "grades" / "learner.ipynb.txt").read_text()
    part_of = {part.partition(":")[0]: part for part in text.split("\n\n")[1:]}
    combine, port, replicate = (part_of[name] for name in ("combine", "naive-port", "replicate"))
    sentence = "your gradient is 15.1% away from that of the whole batch. Every shard counts the"
    assert sentence in row["remark"] and combine.count(sentence) == 1
    assert combine.startswith("combine: 0 of 1\n")
    shown, hidden = port.split("Hidden cases:")
    assert "naive-port: correct." in shown and "✗ It raised KeyError" in hidden
    assert "no function replicate" in replicate


def code_cells(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def test_cells_that_are_no_python_are_numbered():
    notebook = nbformat.v4.new_notebook()
    fine = [
        "%%bash\nif then",
        "%time x = 1",
        "await x",
        "!ls",
        "y = x?",
        "'\\d'",
        "",
        "x = [1] * 3",
    ]
    broken = ["def f(x:\n    pass", "return 1", "x = '\0'", "1 if", "  x\n y", "-" * 10**5 + "1"]
    notebook.cells = [nbformat.v4.new_markdown_cell("for in")]
    notebook.cells += map(code, [*fine, *broken])
    complaints = program("course_grading").unparsed(notebook)
    numbers = [int(complaint.split()[1]) for complaint in complaints]
    assert numbers == [len(fine) + 1 + i for i in range(len(broken))]
    assert "`def f(x:`" in complaints[0]


FOLDERS = [
    "plain.ipynb",
    "Ada Löve_12345_assignsubmission_file_/foundations.ipynb",
    "Ilias/bob/deep/foundations (1).ipynb",
    "late/carol.ipynb",
    "late/dan.ipynb",
    "with-others/foundations.ipynb",
    "only-a-script/answer.py",
]
REMARKS = {
    "printed/answer.pdf": "ends in .pdf: hand in a notebook",
    "words.docx": "ends in .docx",
    "renamed.ipynb.txt": "ends in .txt",
    "LOUD.IPYNB": "ends in .IPYNB",
    "no-ending": "has no ending",
    "nothing": "holds no file",
    "no-zip.zip": "cannot be unpacked",
    "locked.zip": "cannot be unpacked",
    "bomb.zip": "more than 200 MB",
    "many.zip": "more than 1000 files",
    "pipe.ipynb": "no regular file",
    "link.ipynb": "a link",
    "linked": "a link",
}


# By macOS, also in folders that are no Mac's, and by WSL for each file that was downloaded.
MADE_BY_OTHERS = [
    ".DS_Store",
    "Icon\r",
    "._foundations.ipynb",
    "._helper.py",
    "foundations.ipynb:Zone.Identifier",
]


@pytest.fixture(scope="module")
def listing(tmp_path_factory):
    """``({name: submission}, what was told)``"""
    folder, unpacked = (tmp_path_factory.mktemp(name) for name in ("Week 1", "unpacked"))
    for name in [*FOLDERS, *list(REMARKS)[:5]]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    (folder / "nothing").mkdir()
    for name in ("my-predictions.csv", "helper.py", *MADE_BY_OTHERS):
        (folder / "with-others" / name).touch()
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / "grades").mkdir()
    with zipfile.ZipFile(folder / "erin.zip", "w") as file:
        for name in ("foundations.ipynb", "__MACOSX/._foundations.ipynb", "../../out.ipynb"):
            file.writestr(name, "{}")
    with zipfile.ZipFile(folder / "of-windows.zip", "w") as file:
        for name in ("grace/foundations.ipynb", "grace/helper.py", "../../late/foundations.ipynb"):
            name = name.replace("/", "\\")
            file.writestr(name, "{}")
    with zipfile.ZipFile(folder / "clone.zip", "w") as file:  # as launch links bring the course
        file.writestr("course/foundations.ipynb", "{}")
        for number in range(1001):
            file.writestr(f"course/.git/objects/{number}", "")
        file.writestr("course/.venv/lib/helper.py", "")
    with zipfile.ZipFile(folder / "class.zip", "w") as file:
        file.write(folder / "erin.zip", "frank/erin.zip")
    (folder / "no-zip.zip").write_text("words")
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros.ipynb", bytes(201 << 20))
    with zipfile.ZipFile(folder / "many.zip", "w") as file:
        for number in range(1001):
            file.writestr(f"{number}.ipynb", "")
    locked = bytearray((folder / "erin.zip").read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + place] |= 1  # encrypted, says the flag
    (folder / "locked.zip").write_bytes(locked)
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to("/etc")
    messages = []
    listed = program("submissions").submissions(folder, unpacked, messages.append, ("grades",))
    assert all(
        unpacked in path.parents or folder in path.parents
        for submission in listed
        for path in submission.files
    )
    return {submission.name: submission for submission in listed}, messages


class TestWhatIsInTheFolder:
    """Files, folders and zips, as platforms and learners leave them: a row or a word for each."""

    def test_each_has_a_row(self, listing):
        zips = [
            f"{zip}/{name}.ipynb"
            for zip in ("erin.zip", "class.zip/frank/erin.zip")
            for name in ("foundations", "out")
        ]
        zips += [f"of-windows.zip/{name}/foundations.ipynb" for name in ("grace", "late")]
        zips += ["clone.zip/course/foundations.ipynb"]
        assert sorted(listing[0]) == sorted([*FOLDERS, *REMARKS, *zips])

    @pytest.mark.parametrize(("name", "words"), REMARKS.items())
    def test_a_remark_says_why_it_is_not_graded(self, listing, name, words):
        assert words in listing[0][name].remark and not listing[0][name].files

    @pytest.mark.parametrize("name", FOLDERS)
    def test_a_notebook_is_graded(self, listing, name):
        assert listing[0][name].files[0].name == Path(name).name and not listing[0][name].remark

    def test_what_lies_beside_a_notebook_goes_with_it_and_gets_a_word(self, listing):
        beside = listing[0]["with-others/foundations.ipynb"].files[1:]
        assert {path.name for path in beside} == {"my-predictions.csv", "helper.py"}
        for name in ("helper.py", "my-predictions.csv"):
            assert f"with-others/{name}: no row, it goes with the notebook beside it." in listing[1]

    def test_a_zip_of_windows_has_folders_too(self, listing):
        files = listing[0]["of-windows.zip/grace/foundations.ipynb"].files
        assert [path.name for path in files] == ["foundations.ipynb", "helper.py"]

    @pytest.mark.parametrize(
        "name", [".ipynb_checkpoints", "__MACOSX", ".git", ".venv", *MADE_BY_OTHERS]
    )
    def test_what_no_learner_has_made_gets_a_word(self, listing, name):
        assert f"{name}: left out, no learner has made it." in listing[1]


def test_make_grade_takes_a_folder_with_spaces_and_quotes(made, tmp_path):
    folder = tmp_path / "Week 1, Ada's"
    (folder / "late").mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(), folder / "late" / "-2+3.ipynb")
    (folder / "=HYPERLINK(1).pdf").touch()
    with (folder / "large.ipynb").open("w") as file:
        file.truncate(60 << 20)
    command = ["make", "-o", "setup", "grade", f"FOLDER={folder}"]
    command += [f"AUTOGRADER={autograder(made)}", f"PYTHON={sys.executable}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    table = rows(folder)
    assert set(table) == {"late/-2+3.ipynb", "'=HYPERLINK(1).pdf", "large.ipynb"}
    remark = table["late/-2+3.ipynb"]["remark"]
    assert "combine: The notebook has no function combine" in remark
    assert table["large.ipynb"]["remark"].startswith("it is larger than 50 MB")


@pytest.mark.parametrize("account", sample(1, ACCOUNTS), ids=" ".join)
def test_rows_are_there_before_all_are_graded(made, tmp_path, account):
    """A grader that is killed leaves the rows so far, and no process."""
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "1-quick.ipynb")
    (tmp_path / "2-quick.txt").touch()
    for number in range(3, 6):
        submit(tmp_path, f"{number}-endless", {}, LEAVES, "while True:\n    pass")
    command = [sys.executable, "-u", "tools/grade.py", autograder(made), tmp_path, *account]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as grader:
        for line in grader.stdout:
            if f"1-quick.ipynb: 0 of {len(SOLUTIONS)}" in line:
                break
        below = psutil.Process(grader.pid).children(recursive=True)
        grader.kill()
    assert {"1-quick.ipynb", "2-quick.txt"} <= set(rows(tmp_path))
    assert below
    assert not left(below, 60)


class TestConfinement:
    """What is run is bounded, and leaves nothing."""

    @pytest.fixture(params=[False, True], ids=["another account", "own account"])
    def confinement(self, request, tmp_path):
        if os.geteuid() and not request.param:
            pytest.skip("only root has another account to give")
        return program("confinement").Confinement(request.param, tmp_path)

    @pytest.fixture
    def run(self, confinement):
        """Run Python code as a learner's, with limits."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            confinement.give(folder, 0)

            def run(code, seconds=60):
                command = [sys.executable, "-c", code]
                return confinement.run(command, folder, 0, seconds, os.environ | {"HOME": name})

            yield run

    def test_it_says_how_the_command_ended(self, run):
        ended = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
        assert (ended.code, ended.cut, ended.answer, ended.errors) == (3, "", b"out\n", "err\n")

    @pytest.mark.parametrize("stream", sample(1, ["stderr", "stdout"]))
    def test_a_flood_is_bounded_and_ends_with_the_time(self, run, stream):
        process = psutil.Process()
        before = process.memory_info().rss
        ended = run(f"import sys\nwhile True: sys.{stream}.write('debug ' * 100_000)", 5)
        assert ended.cut == "time"
        assert process.memory_info().rss - before < 50 << 20
        assert len(ended.answer) + len(ended.errors) < 2 << 20

    def test_memory_of_all_processes_is_bounded(self, run, monkeypatch):
        monkeypatch.setattr(program("confinement"), "MEMORY", 300 << 20)
        hold = "held = bytearray(200 << 20); import time; time.sleep(600)"
        code = (
            f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {hold!r}])\n"
        )
        assert run(code + hold).cut == "memory"

    @pytest.mark.parametrize("number", sample(1, ["SIGSTOP", "SIGKILL"]))
    def test_a_keeper_that_is_killed_or_stopped_leaves_nothing(self, run, number):
        code = "import os, signal\n" + LEAVES
        code += f"\nos.kill(os.getppid(), signal.{number})\nimport time\ntime.sleep(600)"
        ended = run(code, 5)
        assert ended.code and left_running() == []

    def test_one_that_runs_beside_is_left_alone(self, confinement, tmp_path):
        """Sweeping up behind one ends nothing of another that goes on."""
        from concurrent.futures import ThreadPoolExecutor

        with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as other:
            for slot, name in enumerate((own, other)):
                confinement.give(Path(name), slot)
            done = Path(own, "done")
            waits = f"import os, time\nwhile not os.path.exists({str(done)!r}): time.sleep(0.1)"
            first = [sys.executable, "-c", waits + "\nprint('came to its end')"]
            killed = [sys.executable, "-c", "import os; os.kill(os.getppid(), 9)"]
            with ThreadPoolExecutor(1) as pool:
                job = pool.submit(confinement.run, first, Path(own), 0, 60, os.environ)
                for _ in range(3):
                    confinement.run(killed, Path(other), 1, 60, os.environ)
                done.touch()
                done.chmod(0o644)
                assert job.result().answer == b"came to its end\n"


@pytest.mark.parametrize("score", [True, -1, 1.5, 1e9, float("nan"), float("inf"), "1", None])
def test_what_is_no_score_is_no_point(score, made):
    grade = grade_program()
    grader = grade.Grader(autograder(made).read_bytes(), None, 60, 60)
    questions = {name: {"score": 1, "tests": []} for name in SOLUTIONS}
    assert grader.read({"questions": questions, "remark": ""}, [])[0] == dict.fromkeys(
        sorted(SOLUTIONS), 1
    )
    questions["combine"]["score"] = score
    with pytest.raises(grade.NotGraded, match="points for combine"):
        grader.read({"questions": questions, "remark": ""}, [])


def test_what_makes_no_sense_is_a_row(made, tmp_path):
    """Whatever is raised of one."""
    grade = grade_program()

    class Nonsense:
        def give(self, *_):
            raise RecursionError("deep")

    grader = grade.Grader(autograder(made).read_bytes(), Nonsense(), 60, 60)
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "one.ipynb")
    row = grader.row(grade.Submission("one.ipynb", [tmp_path / "one.ipynb"]), tmp_path)
    assert row["total"] == 0 and row["remark"] == "not graded: RecursionError: deep"


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_of_a_learner_is_a_formula(begin):
    assert grade_program().plain(f"{begin}1") == f"'{begin}1"
    assert grade_program().plain(f"a{begin}") == f"a{begin}"
