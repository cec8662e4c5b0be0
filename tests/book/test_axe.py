"""axe finds nothing serious on any page; on a sample of them contrast, and what a telephone shows.

``every_mode.py`` looks at each page in each mode by all rules.
"""

from pathlib import Path

import pytest
from soaking import sample
from test_pages import HTML, PAGES

AXE = Path(__file__).resolve().parents[1] / "npm/node_modules/axe-core/axe.min.js"
VIOLATIONS = """async rules => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
    return violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .flatMap(({ id, nodes }) => nodes.map(node => [id, node.target.join(" ")]));
}"""
BY_COLOUR = ["color-contrast", "link-in-text-block"]
COLOURS = {"runOnly": {"type": "rule", "values": BY_COLOUR}}
NO_COLOURS = {"rules": {rule: {"enabled": False} for rule in BY_COLOUR}}
# Colours take nearly all of the time. A scheme changes nothing else, a width does not change it.
RUNS = {
    "desk": (1280, "light", NO_COLOURS, [*PAGES, "search"]),
    "light": (1280, "light", COLOURS, [*PAGES[2::8], "search"]),
    "dark": (1280, "dark", COLOURS, PAGES[::8]),
    "telephone": (360, "light", NO_COLOURS, PAGES[::8]),
}


def faults(page, path, rules):
    """[rule, element] of what is serious on the built page ``path``, which ``page`` opens."""
    page.goto((HTML / f"{path}.html").as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.add_script_tag(path=AXE)
    return page.evaluate(VIOLATIONS, rules)


@pytest.mark.parametrize("run", sample(1, RUNS))
def test_axe_finds_nothing_serious(browser, built, run):
    width, scheme, rules, paths = RUNS[run]
    faults_of, window = {}, {"width": width, "height": 800}
    with browser.new_context(color_scheme=scheme, viewport=window) as context:
        page = context.new_page()
        for path in paths:
            faults_of[path] = faults(page, path, rules)
    assert {path: those for path, those in faults_of.items() if those} == {}
