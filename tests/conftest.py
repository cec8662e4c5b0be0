"""What all tests share: interrupts that work, what is left out where something is missing, and a
browser, photographed where a test fails.

A shell starts background commands with SIGINT ignored, and what is ignored is inherited by every
process that a test starts.
"""

import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest
from lacking import leave_out
from programs import program

# The same examples in every run, so that what fails is what was changed.
# `make soak-arguments` draws others.
hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("other", deadline=None)
hypothesis.settings.load_profile("same")

FAILURES = Path(__file__).resolve().parents[1] / ".cache" / "failures"

signal.signal(signal.SIGINT, signal.default_int_handler)

# Node.js may be the one that set-up installed beside this Python.
os.environ["PATH"] += os.pathsep + str(Path(sys.executable).parent)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    leave_out(item)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup():
    _take_its_name_out()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call():
    _take_its_name_out()


def _take_its_name_out():
    """A process whose environment has changed starts another fork server, and imports PyTorch anew.

    pytest puts the name of the test into the environment before each part of it.
    """
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    with program("chromium").chromium() as chromium:
        yield chromium


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add to a failure what its pages show: their text to the report, a picture in ``FAILURES``."""
    report = yield
    if report.failed and "browser" in item.funcargs:
        from playwright.sync_api import Error  # which most rooms of tests do without

        pages = [page for context in item.funcargs["browser"].contexts for page in context.pages]
        for number, page in enumerate(pages, 1):
            picture = FAILURES / f"{item.name}-{call.start:.0f}-{number}.png"
            fields = text = ""
            try:
                fields = page.evaluate("[...document.querySelectorAll('input')].map(e => e.value)")
                text = page.inner_text("body")
                page.screenshot(path=picture)
            except Error as error:  # the report is of the test's failure all the same
                picture = f"no picture: {error}"
            text = f"{picture}\nfields: {fields}\n{text}"
            report.sections.append((f"page {number}: {page.url}", text))
    return report
