"""Downloads from real servers on loopback."""

import random
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirrors import nobody_there, serve

from d2lmgpu.data import download as module
from d2lmgpu.data.download import DownloadError, download

CONTENT = random.Random(0).randbytes(300_001)  # several reads long


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
        None, "bytes=100000-", "bytes=200000-", "bytes=300000-",
    ]  # fmt: skip


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
