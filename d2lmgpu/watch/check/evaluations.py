"""What a rank evaluates after some updates, and what becomes of the numbers that it finds.

An evaluation is the forward passes without gradients, of nets in evaluation mode, from one update
to the next backward pass. What is exchanged and printed in that time belongs to it.
"""

import builtins
import contextlib
import logging
import os
import re
import sys
import time
from functools import wraps

from d2lmgpu.watch.check.divisions import divisions
from d2lmgpu.watch.check.rows import hashes

CLOCK = 20_000_000  # nanoseconds that the time of a file may lag behind
MOST = 20_000  # rows of an evaluation that are hashed
REPORTED = ("step", "where", "end", "exchanged", "divisions", "printed")  # as they are kept
MOST_PRINTS = 50  # prints of an evaluation that are looked at
TESTED = r"\b(test|val|valid|validation|eval|evaluation|dev)(?![a-z])"
RATIO = r"(acc|accuracy|top.?[15]|f1|auc|iou|miou|precision|recall|bleu)\b"
LOSS = r"(loss|error|mse|mae|perplexity|ppl)\b"
NUMBER = r"\d*\.\d+|\d ?%"
SHARED = (  # by which a number may go to another rank without a collective
    r"share_memory|\b(Value|Array|Manager|Queue|Pipe|TCPStore|FileStore|HashStore)\(|\brpc\b|mpi4py"
    r"|h5py|sqlite3"
)
OWNER = r"rank|gpu|cuda|local|process|worker|node|device|shard"


class Evaluations:
    """For each evaluation (see above):

    - ``step``: after how many updates, ``where``: the line of its first forward pass, ``end``:
      whether another backward pass came after it;
    - ``part``: how many rows this rank is to evaluate, ``of``: of how many that it has at hand,
      ``rows``: hashes of the first of them;
    - ``trains``: whether a loader of these trains, too; ``random``: whether they are drawn;
    - ``exchanged``: whether anything went from rank to rank, or may have: in a file, or by what
      the reader's code has for it;
    - ``divisions``: of what is computed after it, see there;
    - ``printed``: (line, "all", "own" or "number"): a metric, as that of all ranks or under this
      rank's name, or another number.
    """

    def __init__(self, watch, facts):
        self.watch = watch
        self.torch = watch.torch
        self.facts = facts
        self.evaluations, self.current = [], None
        self.given, self.training = None, {}  # loaders: kept, so that ids stay theirs
        facts.on_batch.append(self._loaded)
        facts.on_backward.append(self._backward)
        facts.on_evaluation.append(self._passes)
        facts.on_collective.append(self._exchanged)
        self._watch_prints()
        sys.addaudithook(self._audited)

    def _loaded(self, loader):
        self.given = loader

    def _backward(self):
        if self.given is not None:
            self.training[id(self.given)] = self.given
        self.given = None
        if self.current:
            self.current["end"] = True
        self.current = None

    def _passes(self, args, kwargs):
        if self.current is None:
            self.current = {
                "step": self.watch.steps.number,
                "where": self.watch.lines.where(),
                "end": False,
                "loaders": {},
                "rows": set(),
                "number": 0,
                "exchanged": False,
                "divisions": divisions(self.watch, sys._getframe(1)),
                "printed": [],
                "since": time.time_ns(),
            }
            self.evaluations.append(self.current)
        if self.given is not None:
            self.current["loaders"][id(self.given)] = self.given
        tensors = [v for v in [*args, *kwargs.values()] if isinstance(v, self.torch.Tensor)]
        if tensors and tensors[0].dim():
            self.current["number"] += len(tensors[0])
            if len(self.current["rows"]) < MOST:
                self.current["rows"].update(hashes(tensors[0]))

    def _exchanged(self, collective):
        if self.current is None:
            return
        # In inference mode the operators are not seen, but the waiting for them is.
        sent = not collective.waiting or self.torch.is_inference_mode_enabled()
        of_ddp = self.facts.depth and not collective.by_hand  # it sends buffers before a pass
        if sent and not of_ddp and "barrier" not in collective.operator:
            self.current["exchanged"] = True

    def _audited(self, event, arguments):
        """A file that is read was written since the evaluation began: by a peer, as it may be."""
        current = self.current
        if event != "open" or current is None:
            return
        path, _, flags = arguments
        is_file = isinstance(path, str) and os.path.isfile(path) and not path.startswith("/proc/")
        reads = flags & os.O_ACCMODE != os.O_WRONLY
        written = os.stat(path).st_mtime_ns if is_file and reads else 0
        if written > current["since"] - CLOCK:
            current["exchanged"] = True

    def _watch_prints(self):
        real, handle = builtins.print, logging.Logger.handle

        @wraps(real)
        def printed(*args, **kwargs):
            if self.current and self.watch.lines.is_own(sys._getframe(1).f_code.co_filename):
                self._note_print(" ".join(map(str, args)))
            return real(*args, **kwargs)

        @wraps(handle)
        def logged(logger, record):
            if self.current and self.watch.lines.is_own(record.pathname):
                with contextlib.suppress(Exception):  # as logging does with what cannot be put in
                    self._note_print(record.getMessage())
            return handle(logger, record)

        builtins.print, logging.Logger.handle = printed, logged

    def _note_print(self, text):
        kind, printed = metric_owner(text, self.watch.group.rank), self.current["printed"]
        if kind and len(printed) < MOST_PRINTS:
            printed.append([self.watch.lines.where(), kind])

    def report(self) -> dict:
        self.current = None
        shared = bool(self.evaluations) and self.facts.mentions(SHARED)
        for evaluation in self.evaluations:
            evaluation["exchanged"] |= shared
        return {"evaluated": [self._reported(evaluation) for evaluation in self.evaluations]}

    def _reported(self, evaluation):
        loaders = [*evaluation["loaders"].values()]
        samplers = [getattr(loader.batch_sampler, "sampler", loader.sampler) for loader in loaders]
        data = self.torch.utils.data
        drawn = data.RandomSampler, data.WeightedRandomSampler
        reported = {name: evaluation[name] for name in REPORTED}
        reported["rows"] = sorted(evaluation["rows"])
        reported["trains"] = any(id(loader) in self.training for loader in loaders)
        reported["random"] = any(isinstance(s, drawn) for s in samplers)
        try:
            reported["of"] = sum(len(loader.dataset) for loader in loaders) or evaluation["number"]
            reported["part"] = sum(map(len, samplers)) or evaluation["number"]
        except TypeError:  # of a stream
            reported["of"] = reported["part"] = None
        return reported


def metric_owner(text, rank) -> str | None:
    """What a line says: "all", "own", "number", or None; see ``Evaluations``."""
    text = text.lower()
    if not re.search(NUMBER, text):
        return None
    tested = re.search(TESTED, text)
    if not (tested and re.search(LOSS, text)) and not (
        re.search(RATIO, text) and (tested or "train" not in text)
    ):
        return "number"
    named = re.search(OWNER, text) or re.search(rf"^\W*{rank}\b(?!\.)|[\[(]{rank}[\])]", text)
    return "own" if named else "all"
