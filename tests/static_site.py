"""A folder of pages behind a server of this machine, as `make serve` shows them."""

import contextlib
import functools
import gzip
import http.server
import threading
from pathlib import Path

PACKED = {".woff", ".woff2", ".png"}  # what is compressed already: no server does it again


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Compressing(Quiet):
    """Sends what a browser takes so with gzip, as the servers do that pages are published on."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return super().do_GET()
        data = path.read_bytes()
        self.send_response(200)
        if path.suffix not in PACKED:
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.send_body(data)

    def send_body(self, data):
        self.wfile.write(data)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # a page asks for all of its files at once


@contextlib.contextmanager
def served(folder, handler=Quiet):
    """The address of the folder on a free loopback port, without a / at its end."""
    handler = functools.partial(handler, directory=folder)
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
