"""axe finds nothing serious: each page, light and dark, on a telephone and on a desk."""

from pathlib import Path

import pytest
from test_pages import HTML, PAGES

AXE = Path(__file__).resolve().parents[1] / "npm/node_modules/axe-core/axe.min.js"
FOUND = """async rules => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
    return violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .flatMap(({ id, nodes }) => nodes.map(node => [id, node.target.join(" ")]));
}"""
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
NO_COLOURS = {"rules": {"color-contrast": {"enabled": False}}}
# Contrast takes nearly all of the time. A scheme changes nothing else, a width does not change it.
RUNS = {"desk": (1280, "light", {}), "dark": (1280, "dark", COLOURS),
        "telephone": (360, "light", NO_COLOURS)}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_axe_finds_nothing_serious(browser, built, run):
    width, scheme, rules = RUNS[run]
    found, window = {}, {"width": width, "height": 800}
    with browser.new_context(color_scheme=scheme, viewport=window) as context:
        page = context.new_page()
        for path in [*PAGES, "search"]:
            page.goto((HTML / f"{path}.html").as_uri())
            page.evaluate("() => window.MathJax?.startup?.promise")
            page.add_script_tag(path=AXE)
            faults = page.evaluate(FOUND, rules)
            found |= {path: faults} if faults else {}
    assert found == {}
