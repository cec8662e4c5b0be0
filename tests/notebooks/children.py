"""A child of a page's process that runs a mutated cell and what follows, and who kills the mutant.

A mutant is dead when a cell raises or a checked cell prints something else than is stored, when
its process ends, or when a cell hangs: takes far longer than it does as it stands.
"""

import ast
import contextlib
import io
import linecache
import multiprocessing
import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

from nbval.plugin import get_sanitize_patterns
from notebooks import tags, text_of

from d2lmgpu.process.cluster import box, state

SANITIZE = Path(__file__).with_name("sanitize.cfg")
LEAST, TIMES = 20, 5  # a cell hangs after that many seconds and that many times its own
HANG = "a hang"


class WrongOutput(AssertionError):
    """A checked cell printed something else than is stored."""


def run(cell, source, namespace):
    """Run ``source`` in place of a cell's own; raises as it does, and WrongOutput."""
    name = f"<{cell.id}>"
    # As in a notebook: an error names its line, with the source.
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    code, last = ast.parse(source, name), None
    if any(output.output_type == "execute_result" for output in cell.outputs):
        last = ast.Expression(code.body.pop().value)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name, "exec"), namespace)
        if last:
            print(repr(eval(compile(last, name, "eval"), namespace)))
    if "nbval-check-output" in tags(cell):
        stored = "\n".join(map(text_of, cell.outputs))
        if sanitized(out.getvalue()) != sanitized(stored):
            raise WrongOutput(out.getvalue())


def sanitized(text):
    """``text`` as nbval compares it."""
    for pattern, replacement in get_sanitize_patterns(SANITIZE.read_text()):
        text = re.sub(pattern, replacement, text)
    return text.strip()


def run_on(cells, source, namespace, events):
    """In a child: run ``source``, which stands for the first cell, and the cells behind it.

    ``events``: where None is sent after each cell, or what raised, and then no more.
    """
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number, cell in enumerate(cells):
        try:
            run(cell, cell.source if number else source, namespace)
        except BaseException as error:
            events.send(f"{type(error).__name__} {number} cells on")
            break
        events.send(None)
    events.close()
    os.killpg(0, signal.SIGKILL)  # with whatever the cells have started


@contextlib.contextmanager
def restored(namespace):
    """In the end, a page's temporary folders hold again what they held in the beginning.

    Hosts in this box that a mutant has started, and did not live to remove, are gone.
    """
    hosts = state.folder().exists()
    folders = [
        value for value in namespace.values() if isinstance(value, tempfile.TemporaryDirectory)
    ]
    made = [f for f in folders if os.path.isdir(f.name)]  # the page may have cleaned one up
    with tempfile.TemporaryDirectory() as copies:
        for number, folder in enumerate(made):
            shutil.copytree(folder.name, f"{copies}/{number}")
        yield
        for number, folder in enumerate(made):
            shutil.rmtree(folder.name, ignore_errors=True)  # a mutant that survives removes it
            shutil.copytree(f"{copies}/{number}", folder.name)
    if state.folder().exists() and not hosts:
        box.down()


@contextlib.contextmanager
def child(cells, source, namespace):
    """A child that runs them: its events. It is killed in the end."""
    forked = multiprocessing.get_context("fork")
    events, writer = forked.Pipe(duplex=False)
    process = forked.Process(target=run_on, args=(cells, source, namespace, writer))
    process.start()
    with contextlib.suppress(ProcessLookupError):
        os.setpgid(process.pid, process.pid)  # as the child does: it is killed with its group
    writer.close()
    try:
        yield events
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def limits_of(cells, namespace):
    """The seconds after which each cell hangs: of a child that runs them as they stand."""
    limits = []
    with child(cells, cells[0].source, namespace) as events:
        for _ in cells:
            begin = time.perf_counter()
            raised = events.recv()
            assert raised is None, f"the page as it stands fails: {raised}"
            limits.append(LEAST + TIMES * (time.perf_counter() - begin))
    return limits


def killer(cells, source, namespace, limits):
    """Who kills a mutant: the exception of which cell, or a hang; None if it survives."""
    with child(cells, source, namespace) as events:
        try:
            for limit in limits:
                if not events.poll(limit):
                    return HANG
                if raised := events.recv():
                    return raised
            return None
        except EOFError:
            return "the end of its process"


def verdict_on(cells, source, namespace, limits):
    """The ``killer`` of a mutant, after which all is as before.

    ``limits``: seconds by cell id; a page gives the same dict for all of its mutants, which is
    filled when first one takes long.
    """
    while True:
        with restored(namespace):
            seconds = [limits.get(cell.id, LEAST) for cell in cells]
            killed_by = killer(cells, source, namespace, seconds)
        if killed_by != HANG or limits:
            return killed_by
        with restored(namespace):
            limits |= zip((cell.id for cell in cells), limits_of(cells, namespace), strict=True)
