"""The build of the book fails when it should, every time, and keeps nothing that is stale."""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat import v4, write
from programs import program

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
    (tmp_path / "d2lmgpu" / "module.py").write_text("one = 1\n")
    module = program("book")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "BUILD", tmp_path / "_build")
    return module


def chapter(book, *cells):
    write(v4.new_notebook(cells=list(cells)), book.ROOT / "one.ipynb")


def test_failing_cell_fails_the_build_each_time_and_the_mended_one_does_not(book, capfd):
    title = v4.new_markdown_cell("# One")
    chapter(book, title, v4.new_code_cell("assert 1 + 1 == 3"))
    assert book.main() != 0
    assert "AssertionError" in capfd.readouterr().err
    assert book.main() != 0
    chapter(book, title, v4.new_code_cell("assert 1 + 1 == 2"))
    assert book.main() == 0
    training = book.BUILD / "html" / "_static" / "training"
    assert {"training.js", "device.js", "code.js", "images.js"} <= set(os.listdir(training))


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
    head = BeautifulSoup((book.BUILD / "html" / "one.html").read_text(), "html.parser").head
    told = {m["property"]: m["content"] for m in head.select("meta[property^='og:']")}
    assert told["og:title"] == "One “&” all"
    assert told["og:description"] == "What it is about."
    assert told["og:url"] == f"{address}one.html"
    picture = told["og:image"].removeprefix(address)
    assert (book.BUILD / "html" / picture).is_file() and picture.endswith(".png")


def test_changes_of_what_chapters_use_drop_the_build(book, monkeypatch):
    def dropped():
        left = book.BUILD / "left"
        if book.BUILD.exists():
            left.touch()
        book.drop_stale_build()
        return not left.exists()

    assert dropped()
    assert not dropped()
    (book.ROOT / "d2lmgpu" / "module.py").write_text("one = 2\n")
    assert dropped()
    (book.ROOT / "requirements.txt").write_text("numpy==1.23.5\n")
    assert dropped()
    for name, value in {"D2LMGPU_PROFILE": "full", "D2LMGPU_IMAGES": "600"}.items():
        monkeypatch.setenv(name, value)
        assert dropped(), name
    monkeypatch.setattr(book.platform, "python_version", lambda: "3.11.0")
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
    assert "data: test" in (book.BUILD / "html" / "one.html").read_text()
    monkeypatch.setenv(profile, "quick")
    assert book.turn_to_little_data() and os.environ[profile] == "test"
    monkeypatch.setenv(profile, "quick")
    book.drop_stale_build()  # as `make book` begins
    assert not book.turn_to_little_data() and os.environ[profile] == "quick"
