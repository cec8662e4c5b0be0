"""What is kept of an output that may have no end: its head and its tail, and how much was not."""

import itertools
import random
import re
import resource

import pytest

from d2lmgpu.process import output
from d2lmgpu.process.output import Bounded, Lines, Shown, cut, end_of


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
        parts = [first, f"[… {between:,} bytes left out …]", last]
        assert text == "\n".join(part for part in parts if part)


@pytest.mark.parametrize("letter", ["é", "€", "🙂"])
@pytest.mark.parametrize("head, tail", [(10, 10), (11, 11), (12, 12), (13, 13), (0, 7), (7, 0)])
def test_no_letter_is_cut_in_two(letter, head, tail):
    text = kept(head, tail, [letter.encode() * 500])
    pattern = r"([^\n\[]*)\n?\[… ([\d,]+) bytes left out …\]\n?(.*)"
    first, between, last = re.fullmatch(pattern, text).groups()
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


@pytest.mark.parametrize("size", [0, 5, output.TAIL, output.TAIL + 1, 10 << 30])
def test_of_a_file_only_the_end_is_read(tmp_path, size):
    with open(tmp_path / "log", "wb+") as file:
        file.truncate(size)  # a hole takes no room on the disk
        file.seek(max(0, size - 4))
        file.write(b"last"[: min(size, 4)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        text = end_of(file)
        assert text.endswith("last"[: min(size, 4)])
        assert (f"{size - output.TAIL:,} bytes left out" in text) == (size > output.TAIL)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KB


@pytest.mark.parametrize("seed", range(50))
def test_lines_are_those_of_the_whole_however_it_comes(seed):
    rng = random.Random(seed)
    whole = bytes(rng.choices(b"ab\n", k=200))
    lines, complete, rest = Lines(), [], whole
    while rest:
        size = rng.randrange(1, 9)
        complete += lines(rest[:size])
        rest = rest[size:]
    assert complete == [line for line in whole.split(b"\n")[:-1] if line]


def test_a_line_without_an_end_takes_no_memory_and_the_next_one_is_whole():
    lines = Lines()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        assert [*lines(b"x" * 65_536)] == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KB
    first, second = lines(b"its end\nnext\n")
    assert first.endswith(b"xxits end") and second == b"next"


class Watch:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("piece", [b"a line\n", "é".encode(), b"x" * 65_536])
def test_what_can_be_read_is_shown_as_it_comes(piece):
    texts, clock = [], Watch()
    shown = Shown(texts.append, clock)
    for _ in range(60):
        shown(piece)
        assert texts[-1] == piece.decode()
        clock.now += 10
    shown.close()
    assert "".join(texts) == 60 * piece.decode()


def test_a_letter_that_comes_in_two_pieces_is_one():
    texts = []
    shown = Shown(texts.append)
    for byte in "né".encode():
        shown(bytes([byte]))
    assert "".join(texts) == "né"


@pytest.mark.parametrize("piece", [b"a line\n" * 9000, b"x" * 65_536, "é".encode() * 9000])
def test_of_a_flood_the_beginning_and_the_end_are_shown_and_how_much_was_not(piece):
    texts = []
    shown = Shown(texts.append, Watch())
    for _ in range(2000):
        shown(piece)
    shown(b"the end")
    shown.close()
    text = "".join(texts)
    assert text.startswith(piece.decode()) and text.endswith("the end")
    begin, left_out, end = re.split(r"\n\[… ([\d,]+) bytes left out …\]\n", text)
    shown = len((begin + end).encode()) + piece.endswith(b"\n")  # which began a line already
    assert shown + int(left_out.replace(",", "")) == 2000 * len(piece) + 7
    assert shown <= output.BURST + output.TAIL


def test_after_a_flood_what_comes_is_shown_again():
    texts, clock = [], Watch()
    shown = Shown(texts.append, clock)
    for _ in range(1000):
        shown(b"x" * 65_536)
    clock.now += 3600
    shown(b"epoch 1\n")
    assert texts[-1].endswith("epoch 1\n") and "bytes left out" in texts[-1]
    shown(b"epoch 2\n")
    assert texts[-1] == "epoch 2\n"
