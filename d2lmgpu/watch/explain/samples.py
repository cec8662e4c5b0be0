"""Which of the reader's lines are being run: a thread that looks every few milliseconds."""

import threading
from collections import Counter

from d2lmgpu.machine.frames import current_frames

EVERY = 0.007  # seconds


class Samples:
    """``lines``: (part, "file:line") of the thread of the steps -> how often it was seen there.

    ``others``: (thread's native id, "file:line") of the script's other Python threads.
    """

    def __init__(self, parts, where):
        self.lines, self.others = Counter(), Counter()
        self._parts = parts
        self._where = where
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True, name="watch-samples")
        self.thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if threading.current_thread() is not self.thread:
            self.thread.join(1)

    def _look(self):
        while not self._over.wait(EVERY):
            part = self._parts.name
            names = {t.ident: t for t in threading.enumerate()}
            frames = current_frames()
            if self._parts.name != part:
                continue  # it has gone on meanwhile
            for ident, frame in frames.items():
                thread = names.get(ident)
                if thread is None or thread.name.startswith("watch-"):
                    continue
                line = self._line(frame)
                if ident == self._parts.thread:
                    self.lines[part, line] += 1
                elif line:
                    self.others[thread.native_id, line] += 1

    def _line(self, frame):
        frames = []
        while frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return self._where(frames[::-1])


def busy_threads(before, after, skip) -> dict:
    """{native id: processor seconds} of Python threads between two looks (``parts.threads``)."""
    python = {t.native_id for t in threading.enumerate() if not t.name.startswith("watch-")}
    return {i: after[i] - before.get(i, 0.0) for i in python & set(after) if i != skip}
