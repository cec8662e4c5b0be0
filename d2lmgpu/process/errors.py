"""What was raised in a worker, as Python shows it: its causes, contexts, groups and notes; cut."""

import os
import re
import sysconfig
import traceback
from functools import cache
from pathlib import Path

from d2lmgpu.process.output import cut

LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
PACKAGE = str(Path(__file__).resolve().parents[1])  # wherever it is installed, it is no reader's
TWICE = "trying to initialize the default process group twice"  # PyTorch's words
# gloo's, NCCL's and the store's words for a process that is not there any more.
PEER_LOST = re.compile("closed by peer|reset by peer|Broken pipe|remote (worker|process)")


def error_report(error, above) -> dict:
    """``error`` as a dict that JSON can hold.

    - ``error``: its type and what it says, and its notes; of one line also the last line of the
      reader's own code, if there was one;
    - ``traceback``: in whole, from the code on that was called by a file whose path begins with
      ``above``;
    - ``waited``: where its process waited for a peer that was gone, if that is what was raised,
      or why something else was.
    """
    try:
        frames = error.__traceback__
        while frames and frames.tb_frame.f_code.co_filename.startswith(above):
            frames = frames.tb_next
        frames = frames or error.__traceback__
        line = "".join(traceback.format_exception_only(type(error), error)).strip()
        if TWICE in line:
            line += " The workers of launch have one already: leave this call out."
        waited, place = None, _place(frames)
        lost = _peer_lost(error)
        if lost is not None:
            waited = (place if lost is error else _place(lost.__traceback__)) or "in a library"
        if lost is error:
            shown = ["Traceback (most recent call last):\n", *traceback.format_tb(frames)]
        else:
            shown = traceback.format_exception(type(error), error, frames)
        text = "".join(shown)
    except BaseException as odd:  # of a reader's own class; or there is no memory left to say it
        line, text, waited = f"{type(error).__name__}, which cannot be shown: {type(odd)}", "", None
        place = ""
    words = cut(line, 2000, 2000)
    if place and "\n" not in words:  # other words have a traceback of their own
        words = f"{words} ({place})"
    return {"error": words, "traceback": cut(text, 4000, 8000), "waited": waited}


def _peer_lost(error):
    """Of ``error`` and what it was raised from, or while, the first that says that a peer is gone.

    None if none does.
    """
    chain = []
    while error is not None and not any(error is earlier for earlier in chain):
        if isinstance(error, RuntimeError) and PEER_LOST.search(str(error)):
            return error
        chain.append(error)
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return None


@cache
def is_own(file) -> bool:
    """Whether a file is the reader's."""
    return not file.startswith((*LIBRARIES, PACKAGE, "<frozen"))


def _place(frames):
    """The last line of the reader's own code, in words; a notebook's cell has no file to name."""
    lines = traceback.extract_tb(frames)
    own = [frame for frame in lines if is_own(frame.filename)]
    if not own:
        return ""
    # What a library has made of a text, as NumPy does, is in no file, and has no line to show.
    frame = ([frame for frame in own if frame.line] or own)[-1]
    at = f"in {frame.name}, line {frame.lineno}"
    at += f" of {os.path.basename(frame.filename)}" * os.path.exists(frame.filename)
    line = frame.line
    return f"{at}: `{cut(line, 200, 100)}`" if line else at
