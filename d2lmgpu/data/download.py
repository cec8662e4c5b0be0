"""Fetch a file over HTTP from several mirrors.

Why not a library: pooch and torch.hub start again from zero when a connection breaks and know one
address per file, so neither goes on at a second mirror from where the first one stopped.

The files of this course fit in memory (26 MB at most), so nothing is written until all is checked.
A mirror can send neither more than that nor for ever: bytes and seconds are bounded.
"""

import sys
import time
from collections import deque
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request

from d2lmgpu.data.opener import opener

TIMEOUT = 5  # seconds without one byte, connecting or reading, after which a mirror counts as dead
SECONDS = 600  # for one file in all; each mirror has its share of what is left
CHUNK = 1 << 16  # bytes


class DownloadError(OSError):
    """No mirror delivered the whole file; the message says what each of them did."""


def download(urls, most: int, clock=time.monotonic) -> bytes:
    """The bytes of the file that every one of ``urls`` offers; progress goes to stderr.

    A mirror that stops half-way, or takes longer than its share of the time, is followed by the
    next, from the byte where it stopped. It gets another turn at the end only if it brought the
    file further than it had ever been, so this ends. No mirror may send more than ``most`` bytes.

    Raises DownloadError if the mirrors are used up first. What the bytes are is not checked here.
    """
    transfer, longest, failures = _Transfer(most), 0, []
    end = clock() + SECONDS
    waiting = deque(urls)
    while waiting:
        url = waiting.popleft()
        start = clock()
        share = max(0, (end - start) / (1 + len(waiting)))

        def check_time(start=start, share=share):
            if clock() - start > share:
                have = len(transfer.content)
                raise DownloadError(f"too slow: {have:,} bytes were here after {share:.0f} seconds")

        try:
            transfer.receive(url, opener(check_time))
            return bytes(transfer.content)
        except (OSError, HTTPException) as error:
            reason = error.reason if type(error) is URLError else error
            failures.append(f"{urlsplit(url).netloc}: {reason}")
        if len(transfer.content) > longest:
            longest = len(transfer.content)
            waiting.append(url)
            print(f"\nstopped ({failures[-1]}), going on elsewhere", file=sys.stderr)
    raise DownloadError("; ".join(failures))


class _Transfer:
    """What has arrived of a file, and how long the file is (None: no mirror has said)."""

    def __init__(self, most):
        self.most = most
        self.content = bytearray()
        self.total = None
        self.shown = ""

    def receive(self, url, opener):
        """Add what ``url`` has beyond ``content``; OSError or HTTPException if not all came."""
        start = len(self.content) if self.total else 0
        request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
        with opener.open(request, timeout=TIMEOUT) as response:
            if response.status == 206:
                wanted = f"bytes {start}-{self.total - 1}/{self.total}"
                if response.headers["Content-Range"] != wanted:
                    raise DownloadError(f"sent {response.headers['Content-Range']}, not {wanted}")
            else:  # the first request, or a mirror that ignores Range and sends the whole file
                self.content.clear()
                self.total = response.length
            self._check_size(self.total or 0)
            # read1 hands over what has arrived, so that a stalled mirror's last bytes count too.
            while len(self.content) != self.total and (chunk := response.read1(CHUNK)):
                self.content += chunk
                self._check_size(len(self.content))
                self._show_progress(url)
        if self.total is not None and len(self.content) != self.total:
            raise DownloadError(f"closed after {len(self.content):,} of {self.total:,} bytes")

    def _check_size(self, size):
        if size > self.most:
            self.content.clear()
            self.total = None
            raise DownloadError(f"more than {self.most:,} bytes, which is too long for this file")

    def _show_progress(self, url):
        have, parts = len(self.content), urlsplit(url)
        share = f"{have / self.total:4.0%} of " if self.total else ""
        done = "\n" if have == self.total else ""
        size = f"{(self.total or have) / 1e6:.1f} MB"
        line = f"\r{Path(parts.path).name} from {parts.netloc}: {share}{size}{done}"
        if line != self.shown:
            print(line, end="", file=sys.stderr, flush=True)
            self.shown = line
