"""`make lab` opens a copy that is the reader's own; what the reader changed stays in it."""

from functools import partial

import pytest
from programs import program

from d2lmgpu.course.reset import reset

A, B = "chapters/part/a.ipynb", "chapters/part/b.ipynb"


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The program, for a small course in ``tmp_path / "course"``."""
    lab, course = program("lab"), tmp_path / "course"
    (course / A).parent.mkdir(parents=True)
    for name in (A, B):
        (course / name).write_text("as published\n")
    (course / ".gitignore").write_text(".cache/\nmy-copy/\n")
    monkeypatch.setattr(lab, "MINE", course / "my-copy")
    monkeypatch.setattr(lab, "REPOSITORY", course / ".cache" / "lab" / "course.git")
    monkeypatch.setattr(lab.course, "copy", partial(lab.course.copy, root=course))
    return lab


def test_the_reader_s_changes_stay_and_the_course_s_come(lab, tmp_path):
    course = tmp_path / "course"
    lab.update()
    (lab.MINE / A).write_text("the reader's\n")
    (course / B).write_text("the course's next\n")
    lab.update()
    assert (lab.MINE / A).read_text() == "the reader's\n"
    assert (lab.MINE / B).read_text() == "the course's next\n"
    assert (course / A).read_text() == "as published\n" and not (lab.MINE / "my-copy").exists()


def test_a_chapter_comes_back_beside_the_reader_s(lab):
    lab.update()
    (lab.MINE / A).write_text("the reader's\n")
    kept = reset(lab.MINE / A)
    assert kept.read_text() == "the reader's\n"
    assert (lab.MINE / A).read_text() == "as published\n"


def test_what_is_missing_is_said(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="git is missing"):
        lab.update()
