"""Every chapter is as it should be (``hygiene`` and ``agreement`` say what that is)."""

import agreement
import pytest
import yaml
from notebooks import NAMES, ROOT, read
from programs import program
from rules import RULES, TEXT_RULES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_chapter_keeps_the_rule(name, rule):
    assert rule(read(ROOT / name)) == []


@pytest.mark.text
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_chapter_is_written_as_the_others(name, rule):
    assert rule(read(ROOT / name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_chapter_is_stored_as_the_tool_stores_it(name):
    stored = read(ROOT / name)
    program("chapter").normalise(stored)
    assert stored == read(ROOT / name), f"run it again: make run CHAPTER={name}"


@pytest.mark.parametrize("first, second", agreement.PAIRS)
def test_pair_of_chapters_tells_one_story(first, second):
    allowed = agreement.ONLY_IN.get(first, set()) | agreement.ONLY_IN.get(second, set())
    assert agreement.pair_faults(read(ROOT / first), read(ROOT / second), allowed) == []


@pytest.mark.parametrize("name, chapter", agreement.claimed())
def test_chapter_defines_what_the_package_says_it_does(name, chapter):
    assert name in agreement.saved_definitions(read(ROOT / chapter))


def test_table_of_contents_and_pages_are_the_same_set():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = [toc["root"]] + [page["file"] for part in toc["parts"] for page in part["chapters"]]
    pages = [
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "chapters").rglob("*")
        if path.suffix in (".md", ".ipynb") and ".ipynb_checkpoints" not in path.parts
    ]
    assert sorted(listed) == sorted(pages)
