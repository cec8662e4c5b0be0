"""Scripts and styles as files: sound, served once by the book, shipped in the wheel."""

import re
import subprocess

import pytest
import yaml

from d2lmgpu.course.breaking import record
from d2lmgpu.figures.site import PACKAGE, inlined
from d2lmgpu.lab import scripts

ROOT = PACKAGE.parent
SCRIPTS, STYLES = (
    sorted(file for file in PACKAGE.rglob(f"*.{kind}") if not file.name.startswith("uPlot."))
    for kind in ("js", "css")
)  # uPlot's are a library's
RULES = {
    "var, which is not bound to its block": r"\bvar\s",
    "a comparison that converts": r"[^=!]==[^=]|!=[^=]",
    "code made from text": r"\beval\b|\bFunction\(",
    "a word on the console": r"\bconsole\.|\balert\(",
    "a host": r"https?:(?!//www\.w3\.org/)",  # but the name of SVG
    "a statement without its semicolon": r"^(?!.*(?://|= `$)).*[\w)\]\"'`]$(?!\n\s*[.?:|&)])",
}
LINE = 100  # characters


def of_each(files):
    return pytest.mark.parametrize("file", files, ids=lambda file: file.name)


@pytest.mark.needs("node")
@of_each(SCRIPTS)
def test_a_script_has_no_error_of_syntax(file):
    checked = subprocess.run(["node", "--check", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("rule", RULES)
@of_each(SCRIPTS)
def test_a_script_keeps_the_rules(file, rule):
    broken = [match.group().strip() for match in re.finditer(RULES[rule], file.read_text(), re.M)]
    assert broken == []
    assert '"use strict";' in file.read_text()


@pytest.mark.text
@of_each(SCRIPTS)
def test_no_line_is_longer_than_a_window(file):
    assert [line for line in file.read_text().splitlines() if len(line) > LINE] == []


@of_each(STYLES)
def test_a_style_reaches_only_its_own_elements(file):
    rules = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
    selectors = [
        re.sub(r"^(html)?\[data-[^\]]*\] ", "", selector.strip())  # of a theme
        for block in re.findall(r"([^{}]+)\{", rules)
        for selector in re.split(r",(?![^(]*\))", block)  # not within :is(…)
    ]
    assert selectors
    own = (".explore", ".race", ".memory-", ".lab-", ".prediction", ".breaking", "@media")
    assert [selector for selector in selectors if not selector.startswith(own)] == []


def by_the_loader():
    """The scripts of figures that assets/pages/loader.js adds to pages that have their places."""
    loader = (ROOT / "assets" / "pages" / "loader.js").read_text()
    kinds = re.search(r"MOVING = \[(.*?)\]", loader, re.DOTALL)[1]
    moving = [f"{kind}.js" for kind in re.findall(r"\w+", kinds)]
    return moving + re.findall(r'"(\w+\.js)"', loader)


@of_each(SCRIPTS + STYLES)
def test_the_book_serves_it_once(file):
    """Itself or in its folder; and loads it on all pages, or by a loader of scripts."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    served = settings["html_static_path"]
    assert [str(path.relative_to(ROOT)) in served for path in (file, file.parent)].count(True) == 1
    loaded = settings["html_js_files"] + settings["html_css_files"]
    brought = [name for name in (*record.SCRIPTS, record.IN_PAGE) if name.startswith(record.OWN)]
    brought = [name.rpartition("/")[2] for name in brought]
    loaded += {*scripts.IN_BOOK, *brought, *by_the_loader()}  # which loads nothing twice
    assert loaded.count(file.name) == 1


def test_in_the_book_nothing_is_inlined(monkeypatch):
    monkeypatch.delenv("D2LMGPU_BOOK", raising=False)
    names = ("figures/explorer.css", "figures/explorer.js")
    style, script = (PACKAGE.joinpath(name).read_text() for name in names)
    assert inlined(*names) == f"<style>{style}</style><script>{script}</script>"
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    assert inlined(*names) == ""
