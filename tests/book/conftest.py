"""The built pages, served from this machine and opened in a real browser."""

from pathlib import Path

import pytest
from static_site import served

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def built():
    assert (HTML / "index.html").exists(), "there are no built pages: make book"
    return HTML


@pytest.fixture(scope="session", params=["http", "file"])
def site(request, built):
    """Where the pages are: on a server of this machine, and as files."""
    if request.param == "file":
        yield built.as_uri()
        return
    with served(built) as address:
        yield address
