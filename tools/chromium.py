"""The browser that draws and tests the pages: nothing but them, and nothing in the home folder."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

# The first is what Playwright downloads, too: without a window, half the work for the processor.
SYSTEM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGED = Path(__file__).resolve().parents[1] / ".cache" / "chromium"  # by tools/setup.sh
QUIET = ["quic", "background-networking", "component-update", "sync", "gpu"]
NONE = "no Chromium: install your system's chromium package, and run make again"


def program() -> str | None:
    """The system's Chromium, else the one that set-up has unpacked; None if there is neither."""
    packaged = PACKAGED / "chromium"
    return next(filter(None, map(shutil.which, [*SYSTEM, str(packaged)])), None)


def is_there() -> bool:
    """Whether this machine has one, if only the one that Playwright downloaded."""
    downloaded = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "~/.cache/ms-playwright")
    marks = Path(downloaded).expanduser().glob("chromium*/INSTALLATION_COMPLETE")
    return program() is not None or any(marks)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium; SystemExit says what to install where there is none."""
    if not is_there():
        raise SystemExit(NONE)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        # The first is where it keeps reports of crashes, whatever its profile; without the last
        # some builds call their language one that JavaScript refuses.
        places = {"HOME": home, "TMPDIR": home, "LANG": "en_US.UTF-8"}
        if (path := program()) == str(PACKAGED / "chromium"):
            places["LD_LIBRARY_PATH"] = str(PACKAGED / "libraries" / "lib")
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)],
            env=places,
        )
        yield browser
        browser.close()
