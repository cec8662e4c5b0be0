"""A browser that refuses what the panel needs: it says so in words, and never trains in part."""

import contextlib

import pytest
from static_site import Quiet, served
from training_page import press, rows, wait_for, write_page, write_site

SMALL = {"network": "mlp", "batch_size": 1024, "epochs": 1}


def alert(page):
    """What the panel says when it cannot."""
    alert_ = page.locator(".training-error:visible")
    alert_.wait_for()
    return alert_.text_content()


@pytest.fixture
def serve(panel_site, panel_images, page):
    """Opens the page with a panel from a server that sends this content policy with it."""
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)

    @contextlib.contextmanager
    def serve(policy):
        class Strict(Quiet):
            def end_headers(self):
                self.send_header("Content-Security-Policy", policy)
                super().end_headers()

        with served(panel_site, Strict) as address:
            page.goto(f"{address}/page.html")
            press(page, "Run")
            yield

    return serve


@pytest.mark.parametrize(
    "policy, named",
    [
        ("script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'", "worker-src blob:"),
        ("script-src 'self' 'wasm-unsafe-eval'; worker-src 'none'", "worker-src blob:"),
    ],
)
def test_a_policy_that_forbids_workers_is_named(serve, page, policy, named):
    with serve(policy):
        assert named in alert(page) and rows(page) == []
        assert page.get_by_role("button", name="Run", exact=True).is_enabled()


def test_a_policy_that_forbids_webassembly_costs_speed_and_is_said(serve, page):
    with serve("script-src 'self'; worker-src blob:"):
        wait_for(page, "Finished")
        assert "WebAssembly" in page.locator(".training-small").text_content()


def test_the_policy_that_is_asked_for_is_enough(serve, page):
    with serve("script-src 'self' 'wasm-unsafe-eval'; worker-src blob:"):
        wait_for(page, "Finished")
        assert "plain JavaScript" not in page.locator(".training-small").text_content()


MISSING = {
    "Worker": "delete globalThis.Worker",
    "DecompressionStream": "delete globalThis.DecompressionStream",
    "memory": "Worker.prototype.postMessage = () => { throw new RangeError('out of memory') }",
}


@pytest.mark.parametrize("missing", MISSING)
def test_what_a_browser_lacks_is_said(page, panel_site, panel_images, missing):
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)
    page.add_init_script(MISSING[missing])
    page.goto((panel_site / "page.html").as_uri())
    press(page, "Run")
    text = alert(page)
    assert missing in text and rows(page) == []


def test_without_webassembly_it_trains_and_says_that_it_is_slow(page, panel_site, panel_images):
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)
    page.add_init_script("delete globalThis.WebAssembly")
    page.goto((panel_site / "page.html").as_uri())
    press(page, "Run")
    wait_for(page, "Finished")
    assert "WebAssembly" in page.locator(".training-small").text_content()


@pytest.mark.parametrize("file", ["images.js", "code.js", "device.js"])
def test_a_file_that_is_missing_is_named(page, panel_site, panel_images, file):
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)
    (panel_site / "_static" / "training" / file).unlink()
    page.goto((panel_site / "page.html").as_uri())
    press(page, "Run")
    assert file in alert(page)


PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1"


@pytest.mark.parametrize("agent, words", [(PHONE, 1), (None, 0)])
def test_a_browser_that_was_not_tried_is_told_so(browser, panel_site, panel_images, agent, words):
    write_site(panel_site, panel_images)
    write_page(panel_site, **SMALL)
    with browser.new_context(user_agent=agent) as context:
        page = context.new_page()
        page.goto((panel_site / "page.html").as_uri())
        page.locator(".training[data-ready]").wait_for()
        assert page.locator(".training-untried", has_text="not been tried").count() == words
        press(page, "Run")
        wait_for(page, "Finished")
