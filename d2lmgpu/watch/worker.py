"""The process in which a reader's script runs: ``python -m d2lmgpu.watch.worker SCRIPT ARGS``.

The settings are in the environment (``ranks.VARIABLE``). The process is in a view of the files or,
where there is none, what the script writes is diverted from its first line on (``files``). When it
imports PyTorch, its steps are counted (``steps``) and the observer's hooks are put in place, before
anything of PyTorch is used (of MXNet the observer tells the steps). At the end, whichever comes
first, a report is written and the process ends at once.
"""

import atexit
import contextlib
import importlib
import json
import multiprocessing.spawn
import multiprocessing.util
import os
import runpy
import sys
import tempfile
import threading
import time
import traceback
from functools import wraps
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

from d2lmgpu.machine.atomic_write import save
from d2lmgpu.process.hangs.log import LIMIT, Log, stack
from d2lmgpu.process.output import cut
from d2lmgpu.watch import ranks
from d2lmgpu.watch.compiler import import_it_late
from d2lmgpu.watch.files.diversion import divert, divert_torch
from d2lmgpu.watch.files.view import let_folders_be_renamed
from d2lmgpu.watch.group import Group
from d2lmgpu.watch.import_hook import once_imported, withhold
from d2lmgpu.watch.lines import Lines
from d2lmgpu.watch.preloading import PACKAGES, THREADS
from d2lmgpu.watch.steps import ExternalSteps, OptimizerSteps

IMPORTERS = (__file__, once_imported.__code__.co_filename)
WORDS = 1000  # bytes of the beginning, and of the end, of what was raised
PEERS = 5.0  # seconds that a rank waits for its peers' reports, as they may still receive
ENDS = ("finished", "exit", "raised")  # what a script does by itself
POLL = 0.02  # seconds from one look to the next
# What PyTorch and its libraries read of the environment as they are loaded begins so.
READ_AT_IMPORT = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "ATEN_", "TORCH", "PYTORCH_", "LD_")
UNSEEN = ("horovod", "deepspeed")  # packages whose exchange nobody has watched yet


class Watch:
    """What an observer has of the process: see ``run.observe``.

    ``options``, ``limits`` (its fields as attributes), ``script`` (a path), ``torch`` (the module,
    None for MXNet), ``lines`` (the reader's code), ``group`` (its ranks), and ``steps``, to whose
    ``before`` and ``after`` functions may be added.
    """

    def __init__(self, settings, spawned):
        self.torch = None
        self.steps = None
        self.spawned = spawned
        self.options, self.script = settings["options"], settings["script"]
        self.limits, self.folder = SimpleNamespace(**settings["limits"]), Path(settings["folder"])
        self.lines = Lines(settings["own"])
        self._log = Log(self.folder, self.lines.is_own)
        self.group = Group(self._log)
        if not spawned:
            self._log.start(self.group.rank, self.group.world)
        self.records = 0
        self._at_end, self._ending = [], threading.Lock()
        self._start = time.monotonic() if spawned else settings["begun"]
        self.lines.note(os, "sched_setaffinity", lambda *_: "cores")
        self.lines.note(os, "putenv", lambda name, _: os.fsdecode(name))
        once_imported("psutil", self._note_psutil)
        self._diverted = None
        if settings["view"]:
            let_folders_be_renamed()
        else:
            self._diverted = divert(self.folder)
        threading.Thread(target=self._watch_the_clock, daemon=True, name="watch-clock").start()

    def use(self, framework) -> None:
        """The framework is imported now: count the steps, divert what PyTorch writes."""
        if framework.__name__ == "mxnet":
            self.steps = ExternalSteps()
        else:
            self.torch, self.steps = framework, OptimizerSteps(framework)
            self.lines.note(framework, "set_num_threads", lambda *_: "threads")
            if self._diverted:
                divert_torch(framework, self._diverted)
            self.group.listen(framework)
            self.steps.after.append(self._note_update)
        self.steps.after.append(self._look)

    def _note_psutil(self, psutil):
        setting = {True: "cores"}  # without an argument it only asks
        self.lines.note(
            psutil.Process,
            "cpu_affinity",
            lambda *args, **named: setting.get(len(args) + len(named) > 1),
        )

    def at_end(self, function) -> None:
        """Call ``function()`` at the end; the dict that it returns, of plain values, is reported.

        It is called once, in any thread, and also after an error of the script. At a limit of time
        the script goes on meanwhile: what it may add to is copied before it is iterated over.
        """
        self._at_end.append(function)

    def keep(self, name, data: bytes) -> None:
        """Leave ``data`` for the caller, in ``Watched.files`` as "kept-NAME-RANK"."""
        with open(self.folder / f"kept-{name}-{self.group.rank}", "wb") as file:
            file.write(data)

    def recorded(self, number=1) -> None:
        """An observer holds so many records more; at the limit the run ends."""
        self.records += number
        if self.records > self.limits.records:
            self.end("records")

    def end(self, how, frames=(), **fields) -> NoReturn:
        """Write the report and end this process; a second call, from any thread, never returns.

        frames: of what was raised, (file, line, function) each.
        """
        if not self._ending.acquire(blocking=False):
            threading.Event().wait()
        text = fields["error"]["text"] if how == "raised" else f"exit code {fields.get('code')}"
        self._log.ended(how if how in ENDS else LIMIT, text, frames)
        report = {
            "rank": self.group.rank,
            "world": self.group.world,
            "end": how,
            "steps": self.steps.number if self.steps else 0,
            "backwards": self.steps.backwards if self.steps else 0,
            "optimizer": bool(self.steps and self.steps.optimizers),
            "distributed": self.group.joined,
            "spawned": self.spawned,
            "imported": self.steps is not None,
            "mxnet": "mxnet" in sys.modules,
            **fields,
        }
        # its parent, the script, must hear of it; for our own the report is enough
        code = int(fields.get("code", how == "raised")) if self.spawned else 0
        # Whatever goes wrong from here on, the process ends: its other threads wait for that.
        try:
            for function in self._at_end:
                report |= function() or {}
        except BaseException as error:
            traceback.print_exc()
            report |= {"end": "unreported", "error": _in_words(self, error)}
        try:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(ValueError, OSError):
                    stream.flush()
            self._write(report)
            self._wait_for_peers()
        except BaseException:
            traceback.print_exc()
            code = code or 1
        os._exit(code)

    def _write(self, report):
        content = json.dumps(report, default=_plain).encode()
        save(self.folder / f"report-{os.getpid()}.json", content)

    def _wait_for_peers(self):
        """Wait until all ranks have reported: a late one must not find a closed connection."""
        if not self.group.joined:
            return
        until, world = time.monotonic() + PEERS, self.group.world
        while time.monotonic() < until and len([*self.folder.glob("report-*.json")]) < world:
            time.sleep(POLL)

    def _look(self, optimizer):
        if self.steps.number >= self.limits.steps:
            self.end("steps")

    def _watch_the_clock(self):
        while True:
            time.sleep(POLL)
            now = time.monotonic()
            if now - self._start > self.limits.wall:
                self.end("wall")
            enough = self.steps and self.steps.first and self.steps.done >= self.limits.least
            if enough and now - self.steps.first > self.limits.seconds:
                self.end("seconds")

    def _note_update(self, optimizer):
        self._log.updates = self.steps.number


def _plain(value):
    return value.item() if hasattr(value, "item") else str(value)


def watch(spawned=False) -> Watch:
    """Watch this process from now on; its ``Watch``."""
    settings = json.loads(os.environ[ranks.VARIABLE])
    _watch_what_is_spawned()
    watch = Watch(settings, spawned)

    def begin(framework):
        watch.use(framework)
        importlib.import_module(settings["observer"]).observe(watch)

    import_it_late()
    once_imported(settings["framework"], begin)
    for package in UNSEEN:
        once_imported(package, lambda module: _refuse(watch, module.__name__))
    return watch


def _refuse(watch, package):
    """End here if the reader's own line has imported the package, and no library."""
    frames = traceback.walk_stack(sys._getframe(1))
    files = ((frame.f_code.co_filename, line) for frame, line in frames)
    importing = next(f for f in files if "importlib" not in f[0] and f[0] not in IMPORTERS)
    if where := watch.lines.where([importing]):
        watch.end("refused", package=package, where=where)


def _watch_what_is_spawned():
    """Processes that the script spawns are watched, too; those that it forks are as this one."""
    real = multiprocessing.spawn.get_command_line

    @wraps(real)
    def watched(**kwargs):
        line = real(**kwargs)
        if "-c" in line:
            code = line.index("-c") + 1
            line[code] = f"from d2lmgpu.watch import worker; worker.spawned(); {line[code]}"
        return line

    multiprocessing.spawn.get_command_line = watched


def spawned() -> None:
    """Watch a process that the script has spawned: it reports if it joins a group or trains."""
    own_watch = watch(spawned=True)
    ends = [("finished", (), {})]  # the last one is the first that was noted

    def noting(function):
        @wraps(function)
        def noted(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                if len(ends) == 1:
                    ends.append(_end_of(own_watch, error))
                raise

        return noted

    def note_what_it_calls(module):  # which hands an exception to the parent as a text, and exits
        real = module._wrap
        module._wrap = wraps(real)(lambda function, *args: real(noting(function), *args))

    def report():
        if own_watch.group.joined or (own_watch.steps and own_watch.steps.number):
            how, frames, fields = ends[-1]
            own_watch.end(how, frames, **fields)

    BaseProcess.run = noting(BaseProcess.run)
    once_imported("torch.multiprocessing.spawn", note_what_it_calls)
    # multiprocessing leaves a child by os._exit, after what is registered here
    multiprocessing.util.Finalize(None, report, exitpriority=100)
    atexit.register(report)


def _end_of(watch, error):
    """How a process ends in which that was raised: the arguments of ``Watch.end``."""
    frames = stack(error)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return "exit", frames, {"code": code}
    return "raised", frames, {"error": _in_words(watch, error)}


def _in_words(watch, error):
    """What was raised, and at which line of the reader's: ``messages.Error``."""
    text = "".join(traceback.format_exception_only(error)).strip()
    where = watch.lines.where([frame[:2] for frame in stack(error)])
    return {"text": cut(text, WORDS, WORDS), "where": where}


def forked(environ, script, *arguments) -> None:
    """What ``main`` does, in a process that has PyTorch imported, for the script's own import.

    What the script sets before that still counts: where PyTorch would have read it as it was
    imported, this process begins once more, as one that is started.
    """
    import numpy as np  # as PyTorch has done

    np.random.seed()  # not the numbers that another run draws
    tempfile.tempdir = None  # as the environment has it now
    threads, was_set = environ[THREADS], os.environ[THREADS]
    os.environ.clear()
    os.environ.update(environ)
    if threads != was_set:
        sys.modules["torch"].set_num_threads(int(threads))
    before, folder = _read_at_import(), os.getcwd()

    def begin_again_if_set(_):
        if before == _read_at_import():
            return
        os.chdir(folder)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.execve(sys.executable, [*ranks.WORKER, script, *arguments], environ)

    torch, *further = PACKAGES
    withhold(torch)
    for name in further:
        withhold(name, torch)
    once_imported("torch", begin_again_if_set)
    main(script, *arguments)


def _read_at_import():
    return {name: value for name, value in os.environ.items() if name.startswith(READ_AT_IMPORT)}


def main(script, *arguments) -> NoReturn:
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(script))
    own_watch = watch()
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as error:
        if not isinstance(error, SystemExit):
            traceback.print_exc()
        elif error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        how, frames, fields = _end_of(own_watch, error)
        own_watch.end(how, frames, **fields)
    own_watch.end("finished")


if __name__ == "__main__":
    # as a module of its own name: what is spawned and the observer import it again
    from d2lmgpu.watch import worker

    worker.main(*sys.argv[1:])
