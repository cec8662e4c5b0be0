"""JSON in a page's script element: a browser reads it whole, whatever its texts are."""

import ast
from pathlib import Path

import pytest

from d2lmgpu.figures.site import PACKAGE, embedded

HOSTILE = [
    "<!--<script>",
    "<!-- <SCRIPT >",
    "</script><p>out</p>",
    "</SCRIPT >",
    "<!--</script>-->",
    "<script>alert(1)</script>",
    "]]>",
    "&lt;!--",
    "\u2028<!--",
    "\\<!--<script",
    "<\\/script>",
]


@pytest.mark.parametrize("texts", [HOSTILE, *([text] for text in HOSTILE[:3])])
def test_a_browser_reads_what_was_embedded(show_offline, texts):
    page = show_offline(
        f'<script id="data" type="application/json">{embedded({"a": texts, "<!--<script>": 1})}'
        '</script><p id="after">after</p>'
    )
    assert page.locator("#after").inner_text() == "after"
    read = page.evaluate("JSON.parse(document.querySelector('#data').textContent)")
    assert read == {"a": texts, "<!--<script>": 1}
    assert page.locator("p").count() == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_the_browser_s_json_has_not_is_refused(number):
    with pytest.raises(ValueError, match="Out of range"):
        embedded({"a": [number]})


def test_whoever_embeds_json_does_it_so():
    """In files that write a script element, json.dumps is nowhere but in site.py."""
    for path in [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "tools").rglob("*.py")]:
        source = Path(path).read_text(encoding="utf-8")
        if "<script" in source and path.name != "site.py":
            called = {
                ast.unparse(n.func) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)
            }
            assert "json.dumps" not in called, path
