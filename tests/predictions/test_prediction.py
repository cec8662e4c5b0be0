"""Predictions: locked once, kept in files, compared with what happened."""

import csv
import json
import math
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from programs import program

from d2lmgpu.figures.site import BOOK
from d2lmgpu.predictions import Prediction, predictions, store
from d2lmgpu.predictions.store import PredictionError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The reader's own, empty; and a process that has shown nothing yet."""
    monkeypatch.setenv("D2LMGPU_PREDICTIONS", str(tmp_path / "predictions"))
    monkeypatch.setattr(store, "UNSAVED", {})
    monkeypatch.setattr(store, "SHOWN", {})
    return tmp_path / "predictions"


def ask(name="page/speedup", **more):
    return Prediction(name, "How many times as fast?", "times", **{"low": -9, "high": 9} | more)


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_what_is_locked_stays_in_this_kernel_and_in_the_next():
    ask().lock(1.8)
    again = ask()
    assert again.value == 1.8
    again.lock(1.8)  # its cell has been run again
    with pytest.raises(PredictionError, match="was locked at 1"):
        again.lock(2)
    read = "from d2lmgpu.predictions.store import read; print(read('page/speedup')['predicted'])"
    restarted = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True)
    assert "'value': 1.8" in restarted.stdout
    assert ask("page/seconds").value is None


def test_it_can_be_taken_back_until_the_outcome_is_shown(folder):
    question = ask()
    question.lock(9)
    question.take_back()
    assert question.value is None and files(folder) == []
    question.lock(0.9)
    question.happened(1.5)
    with pytest.raises(PredictionError, match="was shown"):
        question.take_back()
    assert ask().value == 0.9
    question._repr_mimebundle_()
    question._field.sheet._handle_custom_msg({"do": "take_back"}, [])
    assert question.value == 0.9 and "was shown" in question._field.sheet.entry["remark"]


def test_the_errors_of_all_predictions_are_a_table(folder):
    for name, guess, outcome in (
        ("a/high", 3, 2),
        ("a/low", 1, 4),
        ("b/zero", 1, 0),
        ("b/open", 1, 0),
    ):
        question = ask(name)
        question.lock(guess)
        if name != "b/open":
            question.happened(outcome, "modelled")
    rows = {row["name"]: row for row in predictions().rows}
    errors = {name: (row["error"], row["percent"]) for name, row in rows.items()}
    assert errors == {
        "a/high": (1, 50),
        "a/low": (-3, -75),
        "b/zero": (1, None),
        "b/open": (None, None),
    }
    assert {row["source"] for row in rows.values()} == {"modelled", None}
    assert rows["a/high"]["question"] == "How many times as fast?"
    ask("a/high").happened(3)
    newest = predictions().rows[0]
    assert (newest["error"], newest["source"], newest["after_outcome"]) == (0, "measured", False)


def test_the_table_can_be_handed_in(folder, tmp_path):
    ask("a/high").lock(3)
    ask("a/high").happened(2, "modelled")
    ask('b/"open", "ö').lock(1)
    table = predictions().save(tmp_path / "mine.csv")
    with (tmp_path / "mine.csv").open(encoding="utf-8", newline="") as file:
        in_file = list(csv.DictReader(file))
    shown = [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.rows]
    assert in_file == shown and [row["error"] for row in in_file] == ["1.0", ""]


def test_without_a_prediction_the_outcome_is_said_and_nothing_is_kept(folder):
    text = repr(ask().happened(1.5))
    assert "1.5 times" in text and "No prediction" in text
    assert files(folder) == []
    late = ask()
    late.lock(1.5)
    assert predictions().rows[0]["after_outcome"] is True


def test_an_unsteady_outcome_is_said_and_not_kept():
    question = ask()
    question.lock(1.8)
    text = repr(question.happened(0.7, unsteady="other programs kept 1.9 of 2 cores busy"))
    assert "0.7 times" in text and "1.9 of 2 cores" in text and "too high" not in text
    assert predictions().rows[0]["happened"] is None
    question.take_back()
    question.lock(1.5)
    assert "too low" in repr(question.happened(1.6)) and predictions().rows[0]["happened"] == 1.6


def test_a_notebook_in_which_nobody_predicts_runs_through(folder):
    source = f"{QUESTION}\np"
    cells = [source, "p.happened(1.5)", "predictions()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    manager = program("jupyter_kernels").AsyncKernelManager
    NotebookClient(notebook, kernel_name="python3", kernel_manager_class=manager).execute()
    for cell in notebook.cells:
        (output,) = cell.outputs
        assert "application/vnd.jupyter.widget-view+json" in output.data
    assert "No prediction" in notebook.cells[1].outputs[0].data["text/plain"]
    assert files(folder) == []


QUESTION = """from d2lmgpu.predictions import Prediction, predictions
p = Prediction("page/speedup", "How many times as fast?", "times", low=0, high=4)"""
RACE = """import sys
from d2lmgpu.predictions import store
sys.stdin.read()
for name in range(20):
    try:
        store.lock(f"page/{name}", float(sys.argv[1]))
    except store.PredictionError:
        pass
    store.lock(f"page/{name} of {sys.argv[1]}", 1)
"""


def test_two_kernels_at_once_lose_none_and_the_first_is_kept(folder):
    both = [
        subprocess.Popen([sys.executable, "-c", RACE, number], stdin=subprocess.PIPE)
        for number in "12"
    ]
    for process in both:
        process.stdin.close()
    assert [process.wait(60) for process in both] == [0, 0]
    rows = predictions().rows
    assert len(rows) == 20 + 2 * 20 and len(files(folder)) == 60, "and no temporary file is left"
    assert all(row["predicted"] in (1, 2) for row in rows)


def test_who_finds_nothing_and_is_second_all_the_same_changes_nothing(folder, monkeypatch):
    ask().lock(1)
    read, answers = store._read, [None]
    monkeypatch.setattr(store, "_read", lambda path: answers.pop() if answers else read(path))
    with pytest.raises(PredictionError, match="was locked at 1 "):
        ask().lock(2)
    assert ask().value == 1 and len(files(folder)) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"value": NaN, "time": ""}', b"\xff"])
def test_a_damaged_file_is_said_and_left_alone(folder, content):
    ask().lock(1.8)
    (file,) = folder.iterdir()
    file.write_bytes(content)
    damaged = ask()
    assert str(file) in repr(damaged) and damaged.value is None
    assert "1.5" in repr(damaged.happened(1.5))
    assert str(file) in predictions().rows[0]["remark"]
    with pytest.raises(PredictionError, match="damaged"):
        damaged.lock(2)
    assert file.read_bytes() == content
    file.unlink()
    ask().lock(2)


def test_where_nothing_can_be_written_it_is_said_and_locked_all_the_same(folder):
    folder.write_text("no folder")
    ask().lock(1.8)
    again = ask()
    assert again.value == 1.8 and str(folder) in repr(again)
    with pytest.raises(PredictionError):
        again.lock(2)
    assert "0.3 (20 %) too high" in repr(again.happened(1.5))
    assert predictions().rows[0]["happened"] == 1.5


def test_what_the_widget_sends_is_checked_and_what_is_wrong_is_said():
    question = ask(low=0, high=4)
    question._repr_mimebundle_()
    sheet = question._field.sheet
    for value, words in ((5, "from 0 to 4"), (-1, "from 0 to 4"), (math.nan, "finite")):
        sheet._handle_custom_msg({"do": "lock", "value": value}, [])
        assert sheet.entry["predicted"] is None and words in sheet.entry["remark"]
    sheet._handle_custom_msg({"do": "lock", "value": 2}, [])
    assert sheet.entry["predicted"]["value"] == 2 and sheet.entry["remark"] == ""
    answer = question.happened(1)
    answer._repr_mimebundle_()
    assert answer.sheet.entry["happened"]["value"] == 1 and sheet.entry["happened"] is None


def test_in_the_book_nothing_is_read_and_nothing_kept(folder, monkeypatch):
    ask().lock(1.8)
    before = files(folder)
    monkeypatch.setenv(BOOK, "1")
    question = ask()
    html = (
        question._repr_mimebundle_()["text/html"]
        + question.happened(1.5)._repr_mimebundle_()["text/html"]
    )
    html += predictions()._repr_mimebundle_()["text/html"]
    assert "1.8" not in html and "1.5" in html
    assert files(folder) == before


@pytest.mark.parametrize("name", ["../../up", "Ü/% .", "a" * 200, "."])
def test_a_name_stays_in_the_folder_and_comes_back(folder, name):
    ask(name).lock(1)
    assert predictions().rows[0]["name"] == name
    assert len(files(folder)) == 1
    assert {path.name for path in folder.parent.iterdir()} <= {"predictions", "temporary"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ask(""),
        lambda: ask("a" * 201),
        lambda: ask(1),
        lambda: Prediction("a", None, low=0, high=1),
        lambda: Prediction("a", "?", unit=1, low=0, high=1),
        lambda: ask(low="0"),
        lambda: ask(high=None),
        lambda: ask(low=2, high=1),
        lambda: ask(low=0).lock(-1),
        lambda: ask().lock(True),
        lambda: ask().lock(float("nan")),
        lambda: ask().lock(1e9),
        lambda: ask().happened("fast"),
        lambda: ask().happened(1, "guessed"),
    ],
)
def test_wrong_arguments_are_refused_in_our_words(wrong):
    with pytest.raises(PredictionError, match="give"):
        wrong()


def test_what_is_kept_is_plain(folder):
    ask().lock(2)
    ask().happened(1, "simulated")
    contents = [json.loads((folder / name).read_text()) for name in files(folder)]
    assert [content["value"] for content in contents] == [1, 2]
    assert contents[0]["source"] == "simulated" and contents[1]["unit"] == "times"
