"""Open a URL so that every read from its socket is seen first: of headers, redirects and content.

A socket's own timeout starts anew with every byte. With it alone, a server that sends one byte a
second is never given up.
"""

import io
import urllib.request
from http.client import HTTPResponse


def opener(before_read) -> urllib.request.OpenerDirector:
    """An opener as urllib builds it, which calls ``before_read()`` before each read of a socket."""

    class Response(HTTPResponse):
        def __init__(self, sock, *args, **kwargs):
            super().__init__(sock, *args, **kwargs)
            self.fp = io.BufferedReader(_Watched(self.fp.detach(), before_read))

    class Handler:
        def do_open(self, connection, request, **settings):
            kind = type(connection.__name__, (connection,), {"response_class": Response})
            return super().do_open(kind, request, **settings)

    kinds = [urllib.request.HTTPHandler, urllib.request.HTTPSHandler]
    return urllib.request.build_opener(*(type(k.__name__, (Handler, k), {}) for k in kinds))


class _Watched(io.RawIOBase):
    """A raw stream, each of whose reads is announced."""

    def __init__(self, raw, before_read):
        self.raw, self.before_read = raw, before_read

    def readable(self):
        return True

    def readinto(self, buffer):
        self.before_read()
        return self.raw.readinto(buffer)

    def close(self):
        self.raw.close()
        super().close()
