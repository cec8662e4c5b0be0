"""Every page in every mode, in Chromium and in Firefox: ``pytest tests/book/every_mode.py``.

`make test` visits each page at each width; contrast it looks at in one scheme of each page.
"""

import pytest
from test_axe import faults
from test_firefox import fox  # noqa: F401
from test_look import faint
from test_pages import CUT, EVERY_PAGE, PAGES, visit
from test_transfer import address, too_large  # noqa: F401

WIDTHS, SCHEMES = (360, 768, 1280, 1440), ("light", "dark")
FITS = f"""() => {{
    const cut = ({CUT})(), {{ scrollWidth }} = document.documentElement;
    return [scrollWidth <= innerWidth ? [] : [scrollWidth], innerWidth >= 1280 ? cut : []];
}}"""


@EVERY_PAGE
def test_chromium(browser, site, page):
    opened, troubles = visit(browser, site, f"{page}.html", 1280)
    opened.emulate_media(reduced_motion="reduce")
    opened.reload()
    moving = opened.evaluate(
        "document.getAnimations().filter(motion => motion.playState === 'running').length"
    )
    wrong_of = {}
    for scheme in SCHEMES:
        opened.emulate_media(color_scheme=scheme)
        opened.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        for width in WIDTHS:
            opened.set_viewport_size({"width": width, "height": 800})
            wrong_of[scheme, width] = opened.evaluate(FITS)
    opened.context.close()
    assert troubles == [] and moving == 0
    assert {mode: wrong for mode, wrong in wrong_of.items() if wrong != [[], []]} == {}


@EVERY_PAGE
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe(browser, built, page, scheme):
    faults_of = {}
    for width in WIDTHS:
        window = {"width": width, "height": 800}
        with browser.new_context(color_scheme=scheme, viewport=window) as context:
            faults_of[width] = faults(context.new_page(), page, {})
    assert {width: those for width, those in faults_of.items() if those} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_outputs(browser, built, scheme):
    count, hardly = faint(browser, scheme, PAGES)
    assert count > 1000 and hardly == {}


def test_transfers(browser, address):  # noqa: F811
    assert too_large(browser, address, PAGES) == {}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_firefox(fox, site, width, scheme):  # noqa: F811
    wrong_of = {}
    for page in PAGES:
        fox.open(f"{site}/{page}.html", width)
        fox.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
        wrong = [*fox.evaluate(f"({FITS})()"), fox.troubles()]
        wrong_of |= {page: wrong} if wrong != [[], [], []] else {}
    assert wrong_of == {}
