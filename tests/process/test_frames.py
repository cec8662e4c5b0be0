"""Messages through a pipe: whole, in order, in pieces, and no longer waited for than is said."""

import os
import threading

import pytest

from d2lmgpu.process.hosts import frames


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as r, os.fdopen(writer, "wb", buffering=0) as w:
        yield r, w


def test_messages_of_several_threads_are_whole(pipe):
    reader, writer = pipe
    send = frames.Sender(writer)
    kinds = [frames.OUTPUT, frames.EVENT, frames.FILE]

    def many(kind):
        for size in range(0, 3 * frames.PIECE, frames.PIECE // 2):
            for piece in frames.pieces(kind * size):
                send(kind, piece)

    threads = [threading.Thread(target=many, args=[kind]) for kind in kinds]
    closer = threading.Thread(target=lambda: [t.join() for t in threads] and writer.close())
    for thread in [*threads, closer]:
        thread.start()
    pieces = list(frames.received(reader, 5))
    assert all(
        set(content) == {kind[0]} and len(content) <= frames.PIECE for kind, content in pieces
    )
    expected = sum(range(0, 3 * frames.PIECE, frames.PIECE // 2))
    for kind in kinds:
        assert sum(len(content) for k, content in pieces if k == kind) == expected


def test_what_comes_before_the_first_message_is_passed_over(pipe):
    reader, writer = pipe
    writer.write(b"Welcome\nd2lmgpu: mess" + frames.FIRST)
    frames.Sender(writer)(frames.HELLO, b"{}")
    writer.write(b"\0\0")  # the beginning of a message whose end never comes
    writer.close()
    assert list(frames.received(reader, 5, frames.FIRST)) == [(frames.HELLO, b"{}")]


@pytest.mark.parametrize("first", [b"", frames.FIRST])
def test_silence_is_an_error(pipe, first, monkeypatch):
    reader, writer = pipe
    monkeypatch.setattr(frames, "SILENCE", 0.2)
    with pytest.raises(TimeoutError):
        list(frames.received(reader, 0.1, first))
    writer.write(first)
    frames.Sender(writer)(frames.BEAT)
    messages = frames.received(reader, 5, frames.FIRST if first else b"")
    if first:
        assert next(messages) == (frames.BEAT, b"")
        with pytest.raises(TimeoutError):
            next(messages)
