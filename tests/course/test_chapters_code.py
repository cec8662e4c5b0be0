"""Chapters run outside of a notebook."""

import json

import pytest

from d2lmgpu.course import chapters


def notebook(path, *cells):
    path.write_text(
        json.dumps(
            {
                "cells": [
                    {"cell_type": "code", "metadata": {"tags": tags}, "source": source}
                    for tags, source in cells
                ]
            }
        )
    )
    return path


def test_runs_what_is_tagged_and_nothing_else(tmp_path):
    path = notebook(
        tmp_path / "a.ipynb",
        (["define"], ["a = 1\n", "b = 2"]),
        ([], "raise RuntimeError('a run')"),
        (["save", "nbval-ignore-output"], "def train(): return a + b"),
    )
    assert chapters.load(path)["train"]() == 3


def test_definitions_travel_to_other_processes_by_value(tmp_path):
    path = notebook(tmp_path / "a.ipynb", (["define"], "def f(): pass"))
    assert chapters.load(path)["f"].__module__ == "__main__"


def test_an_untagged_notebook_is_an_error(tmp_path):
    with pytest.raises(chapters.ChapterError, match="no cell is tagged define or save"):
        chapters.load(notebook(tmp_path / "a.ipynb", ([], "1")))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": [1]}', '{"cells": 1}'])
def test_a_file_that_is_no_notebook_is_an_error_that_names_it(tmp_path, text):
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(chapters.ChapterError, match=r"a\.ipynb is no notebook"):
        chapters.load(tmp_path / "a.ipynb")


def test_a_training_needs_a_backend_and_a_train(tmp_path):
    only_train = notebook(tmp_path / "a.ipynb", (["define"], "def train(): pass"))
    with pytest.raises(chapters.ChapterError, match="defines no d2l"):
        chapters.load_training(only_train)
    both = notebook(tmp_path / "b.ipynb", (["define"], "d2l = 1"), (["define"], "run = print"))
    namespace, train = chapters.load_training(both)
    assert namespace["d2l"] == 1 and train is print


def test_an_error_names_the_cell(tmp_path):
    path = notebook(tmp_path / "a.ipynb", ([], "0"), (["define"], "x = ="))
    with pytest.raises(SyntaxError) as error:
        chapters.load(path)
    assert error.value.filename == f"{path}, cell 1"
