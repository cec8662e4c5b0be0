"""What is kept of an output that may have no end: its head and its tail, and how much was not."""

import itertools
import random
import re
import resource

import pytest

from d2lmgpu.process.output import Bounded, cut


def kept(head, tail, pieces):
    bounded = Bounded(head, tail)
    for piece in pieces:
        bounded.add(piece)
    return bounded.text()


@pytest.mark.parametrize("seed", range(200))
def test_head_tail_and_number_are_those_of_the_whole_however_it_comes(seed):
    rng = random.Random(seed)
    whole = bytes(rng.choices(b"abc\n", k=rng.randrange(200)))
    head, tail = rng.randrange(60), rng.randrange(60)
    cuts = [0, *sorted(rng.choices(range(len(whole) + 1), k=rng.randrange(9))), len(whole)]
    text = kept(head, tail, [whole[a:b] for a, b in itertools.pairwise(cuts)])
    if len(whole) <= head + tail:
        assert text == whole.decode()
    else:
        between = len(whole) - head - tail
        first, last = whole[:head].decode(), whole[len(whole) - tail :].decode()
        assert text == f"{first}\n[… {between:,} bytes left out …]\n{last}"


@pytest.mark.parametrize("letter", ["é", "€", "🙂"])
@pytest.mark.parametrize("head, tail", [(10, 10), (11, 11), (12, 12), (13, 13), (0, 7), (7, 0)])
def test_no_letter_is_cut_in_two(letter, head, tail):
    text = kept(head, tail, [letter.encode() * 500])
    first, between, last = re.fullmatch(
        r"(.*)\n\[… ([\d,]+) bytes left out …\]\n(.*)", text
    ).groups()
    assert set(first + last) <= {letter}
    size = len(letter.encode())
    assert int(between.replace(",", "")) == 500 * size - len((first + last).encode())
    assert len(first) == head // size and len(last) == tail // size


@pytest.mark.parametrize("data", [b"\xff" * 300, b"\x80" * 300, "é".encode()[:1] * 300])
def test_bytes_that_are_no_text_are_shown_as_such(data):
    assert "bytes left out" in kept(20, 20, [data])
    assert kept(200, 200, [data]) == data.decode(errors="replace")


@pytest.mark.parametrize("piece", [b"debug " * 10_000, b"a line\n" * 10_000, b"x" * 65_536])
def test_a_flood_takes_no_memory(piece):
    bounded = Bounded(2000, 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5_000):
        bounded.add(piece)
    assert bounded.size == 5_000 * len(piece)
    assert len(bounded.text()) < 23_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KB


def test_a_text_is_cut():
    assert cut("x" * 10, 5, 5) == "x" * 10
    assert cut("a" * 10 + "b" * 10, 3, 2) == "aaa\n[… 15 bytes left out …]\nbb"
    assert cut("\ud800", 5, 5) == "?"  # half a letter, which Python lets a message have
