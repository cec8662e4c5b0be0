"""What chapters say of themselves, and what is made of it."""

import re

import pytest
import yaml
from chapter_cache import ChapterCache
from hygiene import frameworks
from jupytext.cli import jupytext
from nbformat import v4, write
from notebooks import ROOT, read
from programs import program

facts = program("chapter_facts")
CHAPTERS = facts.chapters()
COURSE = {"idea": "one and one", "hosted": True}
TEXT = "# Adding Up\n\nThis page takes about 5 minutes.\n\n## Adding"
HOURS = {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20}


def notebook(text=TEXT, **course):
    """A chapter; a fact that is ... is left out."""
    course = {key: value for key, value in (COURSE | course).items() if value is not ...}
    code = v4.new_code_cell("assert 1 + 1 == 2")
    return v4.new_notebook(cells=[v4.new_markdown_cell(text), code], metadata={"course": course})


def course(folder, **notebooks):
    """A course of one part in a folder: ``{name: notebook}``, with - for the / in a name."""
    names = [name.replace("_", "/") for name in notebooks]
    pages = [{"file": f"chapters/{name}"} for name in names]
    pages[0]["title"] = "A Short Title"
    toc = {"root": "chapters/intro", "parts": [{"caption": "All", "chapters": pages}]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    for name, chapter in zip(names, notebooks.values()):
        path = folder / "chapters" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(chapter, path)
    return folder


def test_a_chapter_says_its_facts():
    assert facts.facts(notebook(experiments=2), "a/b") == facts.Facts(
        "Adding Up", 5, "one and one", True, None, None, 2
    )


@pytest.mark.parametrize(
    "wrong, words",
    [
        (v4.new_notebook(cells=notebook().cells), "its metadata need 'course'"),
        (notebook(idea=...), "has no 'idea'"),
        (notebook(hosted=...), "has no 'hosted'"),
        (notebook(minutes=5), "and no 'minutes'"),
        (notebook(idea=""), "'idea' is a few words"),
        (notebook(framework="JAX"), "'framework' is PyTorch or MXNet, and left out"),
        (notebook(framework=None), "'framework' is PyTorch or MXNet, and left out"),
        (notebook(hosted="yes"), "'hosted' is true or false"),
        (notebook(framework="MXNet"), "'hosted' is false in MXNet"),
        (notebook(experiments=-1), "'experiments' is the number"),
        (notebook("Adding Up\n\nIt takes about 5 minutes."), "start with a title"),
        (notebook("# Adding Up\n\nIt takes long."), "takes about 30 minutes"),
        (notebook("# Adding Up\n\n## Then\n\nIt takes about 5 minutes."), "its opening says"),
    ],
)
def test_what_is_missing_or_wrong_is_said(wrong, words):
    with pytest.raises(facts.FactsError, match=rf"^chapters/a/b\.ipynb: .*{words}"):
        facts.facts(wrong, "a/b")


def test_order_part_and_short_title_are_those_of_the_side_bar(tmp_path):
    mxnet = {"framework": "MXNet", "hosted": False}
    every = facts.chapters(
        course(
            tmp_path,
            b_two=notebook(framework="PyTorch"),
            a_one=notebook(**mxnet, twin="b/two"),
            a_mine=notebook(framework="PyTorch"),
            a_other=notebook(**mxnet),
        )
    )
    assert [*every] == ["b/two", "a/one", "a/mine", "a/other"]
    assert [chapter.short for chapter in every.values()] == ["A Short Title", *3 * ["Adding Up"]]
    assert [chapter.twin for chapter in every.values()] == ["a/one", "b/two", None, None]
    assert [chapter.only_for for chapter in every.values()] == ["PyTorch", "MXNet", None, "MXNet"]


@pytest.mark.parametrize(
    "first, second, words",
    [
        ({"twin": "a/three"}, {}, "its twin a/three is not in _toc.yml"),
        ({"twin": "a/two"}, {"framework": "PyTorch"}, "are not in PyTorch and MXNet"),
        ({"twin": "a/two"}, {"twin": "a/one"}, "one of a pair says 'twin'"),
    ],
)
def test_chapters_that_are_no_twins(tmp_path, first, second, words):
    first = notebook(framework="PyTorch", **first)
    second = notebook(**{"framework": "MXNet", "hosted": False} | second)
    with pytest.raises(facts.FactsError, match=words):
        facts.chapters(course(tmp_path, a_one=first, a_two=second))


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_imports_the_framework_that_it_names(name):
    imported, named = frameworks(read(ROOT / f"chapters/{name}.ipynb")), CHAPTERS[name].facts
    assert ("mxnet" in imported) == (named.framework == "MXNet")
    assert not ("torch" in imported and named.framework == "MXNet")


@pytest.mark.parametrize("more", [{"framework": "PyTorch"}, {"experiments": 2}])
def test_facts_outlive_the_text_that_jupytext_makes_and_the_tool(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    first = notebook(idea="one: and one", **more)
    write(first, tmp_path / "one.ipynb")
    jupytext(["--quiet", "--to", "md:myst", "one.ipynb"])
    jupytext(["--quiet", "--to", "ipynb", "--set-kernel", "python3", "one.md"])
    again = read(tmp_path / "one.ipynb")
    program("chapter").normalise(again)
    assert again.metadata.course == first.metadata.course
    assert facts.facts(again, "a/b") == facts.facts(first, "a/b")


def test_a_chapter_of_other_facts_is_not_run_again(tmp_path):
    kept, path = ChapterCache(tmp_path), tmp_path / "one.ipynb"
    (tmp_path / "requirements.txt").touch()
    kept.begin()
    kept.put(notebook(), path, seconds=1, began=0)
    assert kept.find(notebook(idea="others", framework="PyTorch", hosted=False))
    other = notebook()
    other.cells[1].source = "assert 1 + 1 != 3"
    assert kept.find(other) is None


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_minutes_that_a_chapter_says_are_those_of_its_words_code_and_cells(name):
    minutes, stated = program("page_minutes"), CHAPTERS[name].facts
    seconds = minutes.recorded().get(CHAPTERS[name].page, 0)
    chapter = read(ROOT / f"chapters/{name}.ipynb")
    assert stated.minutes % 5 == 0
    assert abs(stated.minutes - minutes.estimate(chapter, stated.experiments, seconds)) <= 5


def test_minutes_come_from_words_code_things_to_try_and_seconds():
    def estimate(words=0, lines=0, tags=(), more="", experiments=0, seconds=0):
        code = v4.new_code_cell("x = 1\n" * lines + more, metadata={"tags": list(tags)})
        page = v4.new_notebook(cells=[v4.new_markdown_cell("word " * words), code])
        return program("page_minutes").estimate(page, experiments, seconds)

    assert estimate(seconds=120) == 0
    assert estimate(seconds=1200) == 20
    assert estimate(words=4000) == 20
    assert estimate(lines=300) == 20
    assert estimate(lines=300, tags=["hide-input"]) == 0
    assert estimate(more="TrainingLab(train)\nExplorer(a)") == 10
    assert estimate(experiments=5) == 25


def test_a_book_without_some_of_its_pages_is_not_recorded(monkeypatch, tmp_path):
    minutes = program("page_minutes")
    record = tmp_path / "pages.json"
    record.write_text("as before")
    monkeypatch.setattr(minutes, "RECORD", record)
    with pytest.raises(SystemExit, match=r"chapters/beyond/pipelines.*make book"):
        minutes.record(tmp_path / "cache")
    assert record.read_text() == "as before"


# What is made of them


def test_the_map_is_up_to_date_on_the_page_and_in_a_notebook():
    drawing, draw = program("course_map"), "python tools/course_map.py"
    assert (ROOT / drawing.FILE).read_text() == drawing.course_map(CHAPTERS), draw
    text = (ROOT / drawing.PAGE).read_text()
    assert text == drawing.first_page(text, CHAPTERS), draw
    listed = re.findall(r"\(([\w/-]+)\.ipynb\)", text.partition("## The Map")[2])
    assert listed[: len(CHAPTERS)] == [*CHAPTERS]


def test_the_map_is_drawn_in_the_folder_where_it_is_asked_for(tmp_path):
    drawing = program("course_map")
    course(tmp_path, a_one=notebook(idea="one & one", framework="PyTorch"))
    (tmp_path / "assets").mkdir()
    start, end = drawing.LIST
    (tmp_path / "chapters" / "intro.md").write_text(f"# Title\n\n{start}- old{end}\n\nAfter.\n")
    drawing.write(tmp_path)
    drawn = (tmp_path / drawing.FILE).read_text()
    assert 'href="a/one.html"' in drawn and "<b>A Short Title</b> one &amp; one" in drawn
    assert ">PyTorch, 5 minutes<" in drawn
    listed = f"{start}- All: [A Short Title](a/one.ipynb){end}"
    assert (tmp_path / drawing.PAGE).read_text() == f"# Title\n\n{listed}\n\nAfter.\n"
    (tmp_path / drawing.PAGE).write_text("# Title\n")
    with pytest.raises(facts.FactsError, match="no place for the map"):
        drawing.write(tmp_path)


def test_a_table_of_contents_without_parts_has_no_map(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: one\n")
    program("course_map").write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_toc.yml"]


def test_the_first_page_says_how_many_hours_that_is():
    text = (ROOT / "chapters" / "intro.md").read_text()
    stated = HOURS[re.search(r"one chapter of each pair, that is about (\w+) hours", text)[1]]
    for framework in facts.FRAMEWORKS:
        mine = [chapter for chapter in CHAPTERS.values() if chapter.only_for in (framework, None)]
        assert abs(sum(chapter.facts.minutes for chapter in mine) / 60 - stated) < 1


def test_those_that_say_so_get_a_first_cell(tmp_path):
    repository = {"url": "https://github.com/ada/course", "branch": "main"}
    for hosted, number in ((True, 1), (False, 0)):
        chapter = notebook(hosted=hosted)
        program("first_cells").put(chapter, "a/b", repository)
        assert sum("hosted" in cell.metadata.get("tags", []) for cell in chapter.cells) == number


def test_a_master_of_exercises_has_chapters_of_the_course():
    masters = program("exercise_masters")
    part = masters.Part("new", "New", [masters.Chapter("One", ["a/one", "a/two"])])
    assert masters.place(part, ["b", "a/one", "a/two"]) == 1
    with pytest.raises(facts.FactsError, match=r"exercises/new\.py: .* no chapter a/two"):
        masters.place(part, ["b", "a/one"])
