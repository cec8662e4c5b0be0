"""What all tests share: interrupts that work, and a browser.

A shell starts background commands with SIGINT ignored, and what is ignored is inherited by every
process that a test starts.
"""

import shutil
import signal

import pytest

QUIET = ["quic", "background-networking", "component-update", "sync", "gpu"]
SYSTEM = ("chromium", "chromium-browser", "google-chrome")

signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium: the system's, else the one that Playwright downloaded."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, SYSTEM)), None)
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
    home = str(tmp_path_factory.mktemp("home"))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=arguments, env={"HOME": home}
        )
        yield chromium
        chromium.close()
