"""Downloads from real servers on loopback."""

import random
import threading
import tracemalloc
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirrors import answer, nobody_there, serve

from d2lmgpu.data import download as module
from d2lmgpu.data.download import DownloadError

CONTENT = random.Random(0).randbytes(300_001)  # several reads long


def download(urls, **more):
    return module.download(urls, len(CONTENT), **more)


@pytest.fixture
def two():
    """Two mirrors of the same file, and its two addresses."""
    with serve({"/file": CONTENT}) as first, serve({"/file": CONTENT}) as second:
        yield first, second, [first.url + "file", second.url + "file"]


def test_whole_file_from_the_first_mirror(two, capsys):
    first, second, urls = two
    assert download(urls) == CONTENT
    assert first.requests == [("/file", None, len(CONTENT))] and not second.requests
    assert "100% of 0.3 MB\n" in capsys.readouterr().err


@pytest.mark.parametrize("stalls", [False, True], ids=["closes", "stalls"])
def test_mirror_dies_half_way_and_the_next_one_goes_on(two, stalls, monkeypatch, capsys):
    monkeypatch.setattr(module, "TIMEOUT", 2)
    first, second, urls = two
    half = len(CONTENT) // 2
    first.stop_at, first.stalls = half, stalls
    assert download(urls) == CONTENT
    assert first.requests == [("/file", None, half)]
    assert second.requests == [("/file", f"bytes={half}-", len(CONTENT) - half)]
    assert "going on elsewhere" in capsys.readouterr().err


def test_mirror_that_recovers_gets_another_turn(two):
    first, second, urls = two
    first.stop_at, second.files = 100_000, {}  # each answer of the first ends 100,000 bytes on

    class Recovering(dict):
        def get(self, path):
            first.stop_at = 100_000 * (len(first.requests) + 1)
            return CONTENT

    first.files = Recovering()
    assert download(urls) == CONTENT
    assert first.sent() == len(CONTENT)
    assert [wanted for _, wanted, _ in first.requests] == [
        None,
        "bytes=100000-",
        "bytes=200000-",
        "bytes=300000-",
    ]


def test_mirror_that_ignores_range_sends_all_again(two):
    first, second, urls = two
    first.stop_at, second.ranges = 1000, False
    assert download(urls) == CONTENT
    assert second.requests == [("/file", "bytes=1000-", len(CONTENT))]


def test_mirrors_that_never_finish_are_given_up(two):
    first, second, urls = two
    first.stop_at, second.stop_at, second.ranges = 2000, 1000, False
    with pytest.raises(DownloadError, match=r"closed after 2,000 of 300,001 bytes; .*after 1,000"):
        download(urls)
    # The first brought the file further once, so it had one more turn; the second never did.
    assert len(first.requests) == 2 and len(second.requests) == 1


def test_another_file_at_the_second_mirror_is_not_patched_in(two):
    first, second, urls = two
    first.stop_at, second.files = 1000, {"/file": b"x" * 5000}
    with pytest.raises(DownloadError, match="bytes 1000-4999/5000, not bytes 1000-300000/300001"):
        download(urls)


def test_file_of_unknown_length(two):
    first, second, urls = two
    first.files, second.sizes = {}, False
    assert download(urls) == CONTENT


def test_error_names_every_mirror_and_what_it_did(two):
    first, _, urls = two
    first.files = {}
    with nobody_there() as url, pytest.raises(DownloadError) as error:
        download([urls[0], url + "file"])
    assert f"{first.url[7:-1]}: HTTP Error 404" in str(error.value)
    assert f"{url[7:-1]}: [Errno" in str(error.value) and "refused" in str(error.value)


def chunked(body):
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"%x\r\n%s\r\n" % (len(part), part) for part in body
    )


SUCCESS = b"HTTP/1.0 200 OK\r\n"
TOO_LONG = {
    "says so": SUCCESS + b"Content-Length: 99999999999\r\n\r\n" + bytes(9),
    "does not say": SUCCESS + b"\r\n" + bytes(10**7),
    "in chunks": chunked([bytes(10**5)] * 100),
    "after a redirect": SUCCESS.replace(b"200 OK", b"302 Found") + b"Location: /long\r\n\r\n",
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_what_is_too_long_is_stopped_and_the_next_one_sends_it(case, capsys):
    with answer(TOO_LONG[case]) as url, serve({"/file": CONTENT}) as good:
        with pytest.raises(DownloadError, match="more than 300,001 bytes"):
            download([url + "file"])
        assert download([url + "file", good.url + "file"]) == CONTENT
    assert good.requests == [("/file", None, len(CONTENT))]  # from its beginning


@pytest.mark.parametrize("case", list(TOO_LONG)[1:3])
def test_no_more_than_is_allowed_is_kept_in_memory(case):
    with answer(TOO_LONG[case]) as url:
        tracemalloc.start()
        with pytest.raises(DownloadError):
            download([url + "file"])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3 * len(CONTENT)


SLOW = {
    "with a length": SUCCESS + b"Content-Length: 300001\r\n\r\n" + CONTENT,
    "without": SUCCESS + b"\r\n" + CONTENT,
    "in chunks": chunked([CONTENT[:1]] * 5000),
    "headers": SUCCESS + b"X-Padding: " + b"x" * 5000,
    "a chunk's size": chunked([b"0"])[:-6] + b"1;" + b"x" * 5000,
}


class Ticking:
    """A clock on which a second passes with every look, and then the server may send a byte."""

    def __init__(self):
        self.now, self.stopped, self.looked = 0, False, threading.Condition()

    def __call__(self):
        with self.looked:
            self.now += 1
            self.looked.notify_all()
            return self.now

    def wait_for(self, now):
        """Each server counts for itself: one whose client has left takes no second from others."""
        with self.looked:
            self.looked.wait_for(lambda: self.stopped or self.now >= now)

    def stop(self):
        with self.looked:
            self.stopped = True
            self.looked.notify_all()


@pytest.mark.parametrize("case", SLOW)
def test_one_byte_a_second_is_given_up(case):
    clock = Ticking()
    too_slow = pytest.raises(DownloadError, match=r"too slow: [\d,]+ bytes were here after")
    with answer(SLOW[case], clock) as url, too_slow:
        download([url + "file"], clock=clock)
    assert module.SECONDS <= clock.now < module.SECONDS + 20


def test_a_slow_mirror_leaves_time_for_the_next():
    clock = Ticking()
    with answer(SLOW["with a length"], clock) as slow, serve({"/file": CONTENT}) as good:
        assert download([slow + "file", good.url + "file"], clock=clock) == CONTENT
    ((_, wanted, _),) = good.requests
    assert wanted.startswith("bytes=")  # it goes on from there
    assert clock.now < module.SECONDS


def test_slow_mirrors_end_together():
    clock = Ticking()
    with ExitStack() as stack:
        slow = [stack.enter_context(answer(SLOW[case], clock)) for case in list(SLOW)[:2]]
        stack.enter_context(pytest.raises(DownloadError, match=r"too slow.*; .*too slow"))
        download([url + "file" for url in slow], clock=clock)
    assert clock.now < module.SECONDS + 60


@settings(max_examples=25)
@given(size=st.integers(2, 200), shares=st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_no_byte_comes_twice_however_often_mirrors_die(size, shares):
    content = CONTENT[:size]
    stops = [int(share * (size - 1)) for share in shares]  # all before the end
    with ExitStack() as stack:
        mirrors = [stack.enter_context(serve({"/f": content})) for _ in range(len(stops) + 1)]
        for mirror, stop in zip(mirrors, stops, strict=False):
            mirror.stop_at = stop
        assert download([mirror.url + "f" for mirror in mirrors]) == content
        assert sum(mirror.sent() for mirror in mirrors) == len(content)
