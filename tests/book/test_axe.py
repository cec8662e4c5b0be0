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


@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_serious(browser, built, width):
    found = {}
    for scheme in ("light", "dark"):
        with browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 800}
        ) as context:
            page = context.new_page()
            for path in [*PAGES, "search"]:
                page.goto((HTML / f"{path}.html").as_uri())
                page.evaluate("() => window.MathJax?.startup?.promise")
                page.add_script_tag(path=AXE)
                # What a scheme changes is colours.
                faults = page.evaluate(FOUND, {} if scheme == "light" else COLOURS)
                found |= {(path, scheme): faults} if faults else {}
    assert found == {}
