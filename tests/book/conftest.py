"""The built pages, served from this machine and opened in a real browser."""

import functools
import http.server
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


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
    handler = functools.partial(Handler, directory=built)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
