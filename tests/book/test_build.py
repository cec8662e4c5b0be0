"""The build of the book fails when it should, every time, and keeps nothing that is stale."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml
from bs4 import BeautifulSoup
from chapter_cache import IN_THE_BOOK, ChapterCache
from dependencies import LOG
from nbformat import v4, write
from programs import program
from soaking import sample

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def book(tmp_path, monkeypatch):
    """tools/book.py on a book of one chapter, with the course's own configuration."""
    for name in ("_config.yml", "requirements.txt", "references.bib"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("assets", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: one\n")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    for name in settings["sphinx"]["config"]["html_static_path"]:
        copy = tmp_path / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy)
    module = program("book")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.sys, "argv", ["book.py"])
    for name in (*IN_THE_BOOK, "PYTHONPATH", LOG):
        monkeypatch.setenv(name, "")  # and what a build sets is taken back
        monkeypatch.delenv(name)
    return module


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def chapter(book, *cells, name="one"):
    notebook = v4.new_notebook(cells=list(cells), metadata={"kernelspec": KERNEL})
    write(notebook, book.ROOT / f"{name}.ipynb")


def book_of(book, *names):
    (book.ROOT / "_toc.yml").write_text(
        yaml.safe_dump(
            {
                "format": "jb-book",
                "root": names[0],
                "chapters": [{"file": name} for name in names[1:]],
            }
        )
    )


def page(book, name="one"):
    text = (book.ROOT / "_build" / "html" / f"{name}.html").read_text()
    return BeautifulSoup(text, "html.parser")


FAILURES = {
    "assert 1 + 1 == 3": "AssertionError: , at assert 1 + 1 == 3",
    "def outer():\n    raise ValueError('three is\\nnot two')\nouter()": "ValueError: three is",
    "import os\nos._exit(1)": "Kernel died",
}


@pytest.mark.parametrize("code", sample(["import os\nos._exit(1)"], FAILURES))
def test_a_failing_chapter_costs_that_chapter_each_time_until_it_is_mended(book, code, capfd):
    book_of(book, "one", "two")
    title = v4.new_markdown_cell("# Title")
    chapter(book, title, v4.new_code_cell("print('as', 'it should be')"))
    after = v4.new_code_cell("print(2)", outputs=[v4.new_output("stream", text="stored\n")])
    chapter(book, title, v4.new_code_cell(code), after, name="two")
    for _ in range(2):
        assert book.main() == 1
        output = capfd.readouterr()
        *_, failed, reason, log = output.err.splitlines()
        assert failed.startswith("But 1 of its chapters failed.")
        assert reason.startswith(f"two: {FAILURES[code]}")
        assert FAILURES[code].split(", at")[0].strip(": ") in Path(log.strip()).read_text()
        assert "The book is built" in output.out
        assert "as it should be" in page(book).text and not page(book).select(".danger")
        (danger,) = page(book, "two").select(".danger")
        assert FAILURES[code] in danger.text and log.strip() in danger.text
        assert "stored" not in page(book, "two").text
    chapter(book, title, v4.new_code_cell("assert 1 + 1 == 2"), after, name="two")
    assert book.main() == 0
    assert not page(book, "two").select(".danger")
    training = book.ROOT / "_build" / "html" / "_static" / "training"
    assert {"training.js", "device.js", "code.js", "images.js"} <= set(os.listdir(training))


@pytest.mark.soak
def test_it_says_how_long_it_will_take_and_where_it_is(book, capfd):
    book_of(book, "one", "two", "three")
    for name in ("one", "two", "three"):
        chapter(book, v4.new_markdown_cell("# Title"), v4.new_code_cell(f"{name} = 1"), name=name)
    assert book.main() == 0
    first, *lines = capfd.readouterr().out.splitlines()
    known = "about 2 minutes (by a machine with two cores)."
    assert first == f"3 chapters to run, then the pages: {known}"
    chapter_lines = [line for line in lines if line.startswith("chapter ")]
    assert [line.split(",")[0] for line in chapter_lines] == [
        f"chapter {i} of 3" for i in (1, 2, 3)
    ]
    assert all(
        line.endswith(f"left: {name}") for line, name in zip(chapter_lines, ("one", "two", "three"))
    )
    assert book.main() == 0
    assert "chapter" not in capfd.readouterr().out.split("Running Jupyter-Book")[0]
    chapter(book, v4.new_markdown_cell("# Title"), v4.new_code_cell("two = 2"), name="two")
    assert book.main() == 0
    output = capfd.readouterr().out
    assert "1 chapters to run" in output and "by the last time" in output
    assert "chapter 1 of 1" in output


WORDS = {59: "less than a minute", 61: "about a minute", 655: "about 11 minutes"}


@pytest.mark.parametrize("seconds", WORDS)
def test_minutes_in_words(book, seconds):
    assert book.minutes(seconds) == WORDS[seconds]


def test_an_interruption_ends_the_kernel_and_keeps_what_was_run(book, tmp_path):
    book_of(book, "one", "two")
    title = v4.new_markdown_cell("# Title")
    chapter(book, title, v4.new_code_cell("open('runs', 'a').write('.')"))
    wait = "import os, time\nopen('told', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    os.mkfifo(tmp_path / "told")
    chapter(book, title, v4.new_code_cell(wait), name="two")
    program = (
        "import sys; sys.path.append(sys.argv[1]); import book; from pathlib import Path;"
        "book.ROOT = Path(sys.argv.pop()); sys.exit(book.main())"
    )
    command = [sys.executable, "-c", program, str(ROOT / "tools"), str(tmp_path)]
    built = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    kernel = int((tmp_path / "told").read_text())
    os.killpg(built.pid, signal.SIGINT)
    _, text = built.communicate()
    assert built.returncode == 130
    assert text.splitlines()[-1] == "Interrupted: the next make book goes on from what was run."
    assert "Traceback" not in text and not psutil.pid_exists(kernel)
    chapter(book, title, v4.new_code_cell("1 + 1"), name="two")
    assert book.main() == 0
    assert (tmp_path / "runs").read_text() == "."


def test_warning_fails_the_build_each_time(book):
    chapter(book, v4.new_markdown_cell("# One\n\n[nowhere](missing.md)"))
    assert book.main() != 0
    assert book.main() != 0


def test_an_address_brings_a_picture_for_other_sites(book):
    config = book.ROOT / "_config.yml"
    address = "https://pages.example.org/course/"
    config.write_text(config.read_text().replace('baseurl: ""', f'baseurl: "{address}"'))
    chapter(book, v4.new_markdown_cell('# One "&" all\n\nWhat *it* is about.'))
    assert book.main() == 0
    head = page(book).head
    tags = {m["property"]: m["content"] for m in head.select("meta[property^='og:']")}
    assert tags["og:title"] == "One “&” all"
    assert tags["og:description"] == "What it is about."
    assert tags["og:url"] == f"{address}one.html"
    picture = tags["og:image"].removeprefix(address)
    assert (book.ROOT / "_build" / "html" / picture).is_file() and picture.endswith(".png")


def test_other_settings_drop_the_build(book, monkeypatch):
    kept = ChapterCache(book.ROOT)

    def dropped():
        left = kept.build / "left"
        if kept.build.exists():
            left.touch()
        kept.begin()
        return not left.exists()

    assert dropped()
    assert not dropped()
    (book.ROOT / "requirements.txt").write_text("numpy==1.23.5\n")
    assert dropped()
    for name, value in {"D2LMGPU_PROFILE": "full", "D2LMGPU_IMAGES": "600"}.items():
        monkeypatch.setenv(name, value)
        assert dropped(), name
    monkeypatch.setattr("platform.python_version", lambda: "3.11.0")
    assert dropped()
    monkeypatch.setattr("chapter_cache.num_cores", lambda: 77)
    assert dropped()
    monkeypatch.setattr("d2lmgpu.data.datasets.describe", lambda name: f"{name}: elsewhere")
    assert dropped()
    assert not dropped()


def test_the_tests_show_little_data_unless_the_book_has_been_made(book, monkeypatch):
    profile = "D2LMGPU_PROFILE"
    chapter(
        book,
        v4.new_markdown_cell("# One"),
        v4.new_code_cell(f"import os\nprint('data:', os.environ['{profile}'])"),
    )

    monkeypatch.setenv(profile, "quick")
    monkeypatch.setattr(book.sys, "argv", ["book.py", "--tested"])
    assert book.main() == 0
    assert "data: test" in (book.ROOT / "_build" / "html" / "one.html").read_text()
    monkeypatch.setenv(profile, "quick")
    assert book.turn_to_little_data(book.ROOT) and os.environ[profile] == "test"
    monkeypatch.setenv(profile, "quick")
    ChapterCache(book.ROOT).begin()  # as `make book` does
    assert not book.turn_to_little_data(book.ROOT) and os.environ[profile] == "quick"
