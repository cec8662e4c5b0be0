"""A page that is added to a book which was built before, and one that says something else."""

from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes
from nbformat import v4, write
from programs import program
from sphinx_external_toc.parsing import parse_toc_data

PAGES = ["chapters/a/pytorch", "chapters/a/mxnet", "chapters/b/new"]
TOC = {
    "format": "jb-book",
    "root": "intro",
    "parts": [{"caption": "All", "chapters": [{"file": page} for page in PAGES]}],
}


def say(env, page, framework, **more):
    course = {"idea": "some", "framework": framework, "hosted": framework != "MXNet"} | more
    text = v4.new_markdown_cell("# Title\n\nIt takes about 5 minutes.")
    path = env.srcdir / f"{page}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(v4.new_notebook(cells=[text], metadata={"course": course}), path)


@pytest.fixture
def env(tmp_path):
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(TOC))
    titles = {page: nodes.title("", page) for page in ("intro", *PAGES[:2])}
    env = SimpleNamespace(
        titles=titles, external_site_map=parse_toc_data(TOC), srcdir=tmp_path, found_docs={*titles}
    )
    say(env, PAGES[0], "PyTorch")
    say(env, PAGES[1], "MXNet", twin="a/pytorch")
    say(env, PAGES[2], "PyTorch")
    return env


def test_pages_that_were_not_read_yet_are_no_error(env):
    two_ways = program("two_ways")
    assert two_ways.read_facts(None, env, {PAGES[2]}, {PAGES[1]}, set()) == [PAGES[0]]
    *_, mxnet, new = two_ways.path(env)
    assert mxnet == {"page": PAGES[1], "title": PAGES[1], "framework": "MXNet"}
    assert new == {"page": PAGES[2], "title": PAGES[2], "framework": None}
    assert two_ways.twin(env, PAGES[0]) == (PAGES[1], "MXNet")
    assert two_ways.twin(env, PAGES[2]) is None


def test_with_another_framework_all_pages_lead_elsewhere(env):
    two_ways = program("two_ways")
    two_ways.read_facts(None, env, {*PAGES}, set(), set())
    assert two_ways.read_facts(None, env, set(), set(), set()) == []
    say(env, PAGES[2], "MXNet")
    assert two_ways.read_facts(None, env, set(), {PAGES[2]}, set()) == list(env.found_docs)
