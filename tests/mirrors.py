"""Local HTTP servers that behave as mirrors do, well and badly."""

import contextlib
import re
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Mirror:
    """Serves ``files`` (path to bytes) and notes each request as ``(path, Range, bytes sent)``.

    ``stop_at``: the byte of a file at which it stops, whatever was asked for (None: never);
    ``stalls``: it then holds the connection open in silence instead of closing it.
    ``ranges``: whether it honours Range. ``sizes``: whether it says how long a file is.
    ``meet``: a barrier that every request waits at, so that clients overlap for certain.
    """

    def __init__(self, files):
        self.files = files
        self.stop_at = None
        self.stalls = False
        self.ranges = True
        self.sizes = True
        self.meet = None
        self.requests = []
        self.closing = threading.Event()

    def respond(self, handler):
        if self.meet:
            self.meet.wait()
        wanted = handler.headers["Range"]
        content = self.files.get(handler.path)
        if content is None:
            self.requests.append((handler.path, wanted, 0))
            handler.send_error(404)
            return
        start = 0
        if wanted and self.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            handler.send_response(206)
            last = len(content) - 1
            handler.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
        else:
            handler.send_response(200)
        if self.sizes:
            handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        body = content[start : self.stop_at]
        self.requests.append((handler.path, wanted, len(body)))
        handler.wfile.write(body)
        if self.stalls:
            self.closing.wait()

    def sent(self):
        """Bytes of content sent so far, in all answers together."""
        return sum(n for _, _, n in self.requests)


@contextlib.contextmanager
def serve(files):
    """A Mirror on a free loopback port; its address, ending in /, is ``mirror.url``."""
    mirror = Mirror(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            mirror.respond(self)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mirror.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield mirror
    finally:
        mirror.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def answer(content, clock=None):
    """The address of a loopback port that answers every request with these bytes, headers included.

    ``clock``: one that ticks, with one byte for every tick. /long is answered without an end.
    """
    closing = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            asked = self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):  # the client has gone
                if asked.startswith(b"GET /long"):
                    self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
                    while not closing.is_set():
                        self.wfile.write(bytes(10**5))
                if clock is None:
                    self.wfile.write(content)
                    return
                start = clock.now
                for sent, byte in enumerate(content):
                    clock.wait_for(start + sent)
                    self.wfile.write(bytes([byte]))
                    if closing.is_set():
                        return

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        closing.set()
        if clock:
            clock.stop()
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def nobody_there():
    """The address of a loopback port that refuses connections: bound, but not listened to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
