"""On a telephone every picture, table and explorer is seen whole, in letters that can be read."""

import pytest
from test_pages import EVERY_PAGE, visit

WIDTHS = (360, 390)
LEAST = 9  # pixels, of a letter
# What lies outside of the window, or of a box that cuts it off, and letters that are too small: of
# the elements themselves, and line by line of their texts.
FLAWS = """least => {
    const flaws = new Set();
    const shown = ".explore, .explore-answer, .steps, .training, .lab-root";
    const of = (part) => `:is(figure, svg, table, ${shown}) ${part}`;
    const parts = `article :is(figure, svg, table, ${shown}), article ${of("*")}`;
    const cuts = (box) => getComputedStyle(box).overflowX !== "visible";

    function room(element) { // where what the element holds is seen: [left, right]
        let left = 0, right = innerWidth;
        for (let box = element; box.tagName !== "ARTICLE"; box = box.parentElement) {
            const part = box instanceof SVGElement && !(box instanceof SVGSVGElement);
            if (part || !cuts(box)) continue;
            const edges = box.getBoundingClientRect();
            [left, right] = [Math.max(left, edges.left), Math.min(right, edges.right)];
        }
        return [left, right];
    }

    function size(element) {
        const set = parseFloat(getComputedStyle(element).fontSize);
        const matrix = element.getScreenCTM?.();
        return matrix ? set * Math.hypot(matrix.a, matrix.b) : set;
    }

    for (const element of document.querySelectorAll(parts)) {
        if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        // Formulas are there for screen readers, too; a lab's runs, in thirteen columns, are moved
        // in their box.
        if (element.closest("mjx-assistive-mml, .lab-table")) continue;
        const name = `${element.tagName} ${element.getAttribute("class") ?? ""}`;
        const [left, right] = room(element.parentElement);
        const told = (what, text = "") => flaws.add(`${what}: ${name} ${text}`.slice(0, 90));
        if (element.matches(`figure, svg, table, ${shown}`)) {
            const box = element.getBoundingClientRect();
            if (box.left < left - 1 || box.right > right + 1) told("cut");
        }
        for (const text of element.childNodes) {
            if (text.nodeType !== Node.TEXT_NODE || !text.data.trim()) continue;
            const range = document.createRange();
            range.selectNodeContents(text);
            const lines = [...range.getClientRects()].filter(({ width }) => width > 1);
            const [from, to] = element instanceof SVGElement ? [left, right] : room(element);
            if (lines.some((line) => line.left < from - 1 || line.right > to + 1)) {
                told("cut letters", text.data.trim());
            }
            if (lines.length && size(element) < least) {
                told(`${size(element).toFixed(1)} px`, text.data.trim());
            }
        }
    }
    return [...flaws];
}"""

# What a fold shows fades in from the frame after its opening.
UNFOLD = """async () => {
    const folds = [...document.querySelectorAll("details")];
    for (const fold of folds) fold.open = true;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const fades = folds.flatMap((fold) => fold.getAnimations({ subtree: true }));
    for (const fade of fades) fade.finish();
}"""


@pytest.mark.parametrize("site", ["http"], indirect=True)
@EVERY_PAGE
def test_all_of_it_is_in_the_window_and_can_be_read(browser, site, page):
    opened, _ = visit(browser, site, f"{page}.html", WIDTHS[0])
    opened.evaluate(UNFOLD)
    flaws = {}
    for width in WIDTHS:
        opened.set_viewport_size({"width": width, "height": 800})
        flaws[width] = opened.evaluate(FLAWS, LEAST)
    opened.context.close()
    assert flaws == {width: [] for width in WIDTHS}
