"""A page that is added to a book which was built before."""

from types import SimpleNamespace

from docutils import nodes
from programs import program
from sphinx_external_toc.parsing import parse_toc_data

TOC = {
    "root": "intro",
    "entries": [
        {"file": "a/pytorch", "title": "In PyTorch"},
        {"file": "a/mxnet", "title": "In MXNet"},
        {"file": "b/new"},
    ],
}


def test_pages_that_were_not_read_yet_are_no_error():
    two_ways = program("two_ways")
    titles = {page: nodes.title("", page.title()) for page in ("intro", "a/pytorch", "a/mxnet")}
    env = SimpleNamespace(titles=titles, external_site_map=parse_toc_data(TOC))
    assert two_ways.read_twins_too(None, env, {"b/new"}, {"a/mxnet"}, set()) == ["a/pytorch"]
    assert two_ways.path(env)[-1] == {"page": "b/new", "title": "b/new", "framework": None}
