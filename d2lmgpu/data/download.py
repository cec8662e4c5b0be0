"""Fetch a file over HTTP from several mirrors.

Why not a library: pooch and torch.hub start again from zero when a connection breaks and know one
address per file, so neither goes on at a second mirror from where the first one stopped.

The files of this course fit in memory (26 MB at most), so nothing is written until all is checked.
"""

import sys
import urllib.request
from collections import deque
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

TIMEOUT = 5  # seconds without one byte, connecting or reading, after which a mirror counts as dead
CHUNK = 1 << 16  # bytes


class DownloadError(OSError):
    """No mirror delivered the whole file; the message says what each of them did."""


def download(urls) -> bytes:
    """The bytes of the file that every one of ``urls`` offers; progress goes to stderr.

    A mirror that stops half-way is followed by the next, from the byte where it stopped. It gets
    another turn at the end only if it brought the file further than it had ever been, so this ends.

    Raises DownloadError if the mirrors are used up first. What the bytes are is not checked here.
    """
    transfer, longest, failures = _Transfer(), 0, []
    waiting = deque(urls)
    while waiting:
        url = waiting.popleft()
        try:
            transfer.receive(url)
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

    def __init__(self):
        self.content = bytearray()
        self.total = None
        self.shown = ""

    def receive(self, url):
        """Add what ``url`` has beyond ``content``; OSError or HTTPException if not all came."""
        start = len(self.content) if self.total else 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            if response.status == 206:
                wanted = f"bytes {start}-{self.total - 1}/{self.total}"
                if response.headers["Content-Range"] != wanted:
                    raise DownloadError(f"sent {response.headers['Content-Range']}, not {wanted}")
            else:  # the first request, or a mirror that ignores Range and sends the whole file
                self.content.clear()
                self.total = response.length
            # read1 hands over what has arrived, so that a stalled mirror's last bytes count too.
            while len(self.content) != self.total and (chunk := response.read1(CHUNK)):
                self.content += chunk
                self._show_progress(url)
        if self.total is not None and len(self.content) != self.total:
            raise DownloadError(f"closed after {len(self.content):,} of {self.total:,} bytes")

    def _show_progress(self, url):
        have, parts = len(self.content), urlsplit(url)
        share = f"{have / self.total:4.0%} of " if self.total else ""
        done = "\n" if have == self.total else ""
        size = f"{(self.total or have) / 1e6:.1f} MB"
        line = f"\r{Path(parts.path).name} from {parts.netloc}: {share}{size}{done}"
        if line != self.shown:
            print(line, end="", file=sys.stderr, flush=True)
            self.shown = line
