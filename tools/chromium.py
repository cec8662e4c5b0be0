"""The browser that draws and tests the pages: nothing but them, and nothing in the home folder."""

import shutil
import tempfile
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

# The first is what Playwright downloads, too: without a window, half the work for the processor.
SYSTEM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
QUIET = ["quic", "background-networking", "component-update", "sync", "gpu"]


@contextmanager
def chromium():
    """A headless Chromium: the system's, else the one that Playwright downloaded."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, SYSTEM)), None),
            args=["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)],
            env={"HOME": home},  # where it keeps reports of crashes, whatever its profile
        )
        yield browser
        browser.close()
