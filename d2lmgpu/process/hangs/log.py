"""What a rank does, for its starter to read: see ``Log``.

A file has places of a fixed size, each with one line of JSON: who the rank is and how it has ended,
where its main thread is, and its last collectives, the newest in place of the oldest. It is mapped
into memory: to write costs no call of the system, and what a crash leaves can be read.
"""

import contextlib
import mmap
import os
import threading
from json import dumps  # of these, as a function may replace those of their modules
from os import getpid
from sys import _getframe
from time import monotonic, process_time, sleep
from traceback import extract_tb

from d2lmgpu.machine.core_queue import on_cores
from d2lmgpu.machine.frames import current_frames
from d2lmgpu.process.hangs.locks import interrupted_later, stuck_children, waits_for_ever

NAME = "hang-{pid}"
LIMIT = "limit"  # how a rank has ended that was stopped from outside
PLACE, FIRST, CALLS = 1024, 2, 256  # bytes of a place, the first of a collective, how many
BEAT = 0.2  # seconds from one look at the main thread to the next
KEPT = 2000  # calls of different kinds, shapes or lines that are remembered in words
DEEP = 3  # places of the reader's that are kept of a collective
ABOVE = 80  # frames that are looked through for a line of the reader's
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
HOOKS = tuple(
    os.path.join(PACKAGE, *path)
    for path in (("process", "hangs", "calls.py"), ("watch", "collectives.py"))
)
PUBLIC = ("distributed_c10d.py", "_functional_collectives.py")  # files of what a script calls
BACKWARD = "_engine_run_backward"  # PyTorch's function in which a backward pass runs
BETWEEN = ("_ops.py",)  # of PyTorch, from a hook to the operator
DISTRIBUTED = f"{os.sep}torch{os.sep}distributed{os.sep}"
DDP = os.path.join("torch", "nn", "parallel", "distributed.py")  # its forward exchanges, too
LOADER = f"{os.sep}torch{os.sep}utils{os.sep}data{os.sep}"
LOCKS = ("threading.py", "queue.py", "synchronize.py", "connection.py", "selectors.py")


class Log:
    """The file of this process in ``folder``; ``own(file)`` tells the reader's files of others.

    ``updates`` is how many updates of the weights were made, and is set from outside.
    """

    def __init__(self, folder, own):
        self._folder = folder
        self._is_own = own
        self._kinds = {}
        self._words = {}  # of a call -> what is written of each that is like it
        self._main = threading.main_thread()
        self._pid = None
        self._map = None
        self._numbers = {}
        self._calls = 0
        self.updates = 0
        self._head = {}

    def start(self, rank, world, joined=False) -> None:
        """This process is a rank, or will be; ``joined``: it calls, or has called, for a group."""
        if self._pid != getpid():  # a fork has its parent's file
            with contextlib.suppress(OSError):  # without room for it the rank trains all the same
                self._map = _mapped(os.path.join(self._folder, NAME.format(pid=getpid())))
                self._pid = getpid()
                self._calls = 0
                self._numbers = {}
                self._main = threading.main_thread()
                threading.Thread(target=self._beats, daemon=True, name="hang-log").start()
        if self._pid != getpid():
            return
        self._head = {"rank": rank, "world": world, "joined": joined, "ended": None}
        self._write(0, self._head)

    def note(self, kind, tensors, group="", peer=None) -> None:
        """A collective begins.

        kind: its name. tensors: what this rank puts in. group: a name, empty of all ranks. peer: of
        a message to or from one rank its number.
        """
        if self._pid != getpid():
            return
        number = None
        if peer is None:
            self._numbers[group] = number = self._numbers.get(group, 0) + 1
        places, public, backward = self._places(_getframe(1))
        shapes = tuple(tensor.shape for tensor in tensors[:8])
        same = (group, kind, public, shapes, *places, backward, peer)
        if (words := self._words.get(same)) is None:
            # What is the same at each call from this line is put into words once.
            files = [self._named(place) for place in places]
            sizes = [[*shape] for shape in shapes]
            words = dumps([group, kind, public, sizes, files, backward, peer])[1:]
            self._words = {**self._words, same: words} if len(self._words) < KEPT else {same: words}
        self._calls += 1
        line = f"[{self._calls}, {number or 'null'}, {self.updates}, {words}"
        self._put(FIRST + self._calls % CALLS, line)

    def ended(self, how, text="", frames=()) -> None:
        """The rank has ended: ``how`` in a word. ``text`` and ``frames`` [(file, line, function)]:
        of what it raised."""
        if self._pid != getpid() or self._head["ended"]:
            return
        own = [frame for frame in frames if self._is_own(frame[0])]
        self._head |= {
            "ended": how,
            "at": monotonic(),
            "text": text[:400],
            "updates": self.updates,
            "backward": any(frame[2] == BACKWARD for frame in frames),
            "place": [*own[-1]] if own else None,
        }
        self._write(0, self._head)

    def _write(self, place, content):
        self._put(place, dumps(content))

    def _put(self, place, line):
        line = line.encode()[: PLACE - 1] + b"\0"  # what is longer cannot be read, and is left out
        at = place * PLACE
        self._map[at : at + len(line)] = line

    def _kind(self, code):
        """Of a function whether it is the reader's, the backward pass's, or a public one."""
        if self._is_own(code.co_filename):
            return "own"
        if code.co_name == BACKWARD:
            return "backward"
        return "public" if code.co_filename.endswith(PUBLIC) else ""

    def _places(self, frame, most=DEEP):
        """([place] of the reader's, from the inside out, PyTorch's function, in backward?).

        A place is (id of the code, line): code is compared by all that is in it, which takes long.
        """
        places, public, backward, kinds = [], None, False, self._kinds
        for _ in range(ABOVE):
            if frame is None or len(places) == most:
                break
            code = frame.f_code
            if (known := kinds.get(id(code))) is None:
                known = kinds[id(code)] = self._kind(code), code  # so that its id stays its own
            kind = known[0]
            if kind == "own":
                places.append((id(code), frame.f_lineno))
            elif not places and kind == "backward":
                backward = True
            elif not places and kind == "public":
                public = code.co_name
            frame = frame.f_back
        return places, public, backward

    def _named(self, place):
        code, line = self._kinds[place[0]][1], place[1]
        return [code.co_filename, line, code.co_name]

    def _beats(self):
        """Write where the main thread is, as long as that can be done."""
        try:
            self._beat()
        except Exception:  # the reader may have replaced what it needs, as the built-in len
            return  # without a word: it would run into those of the reader's own error

    def _beat(self):
        """Write where the main thread is, again and again."""
        pid = self._pid
        while self._pid == pid and self._main.is_alive():
            frames = current_frames()
            if frame := frames.get(self._main.ident):
                places, public, backward = self._places(frame, 1)
                place = self._named(places[0]) if places else None
                own_threads = {self._main.ident, threading.get_ident()}
                others = [f for i, f in frames.items() if i not in own_threads]
                busy = any(self._places(f, 1)[0] for f in others)
                does = doing(frame)
                self._write(
                    1,
                    {
                        "at": monotonic(),
                        "cpu": process_time() + without_core(pid),
                        "busy": busy,
                        "place": place,
                        "public": public,
                        "backward": backward,
                        "doing": does,
                        "stuck": _stuck(does, pid, others),
                        "calls": self._calls,
                        "updates": self.updates,
                    },
                )
            del frame, frames, others
            sleep(BEAT)


def without_core(pid) -> float:
    """Seconds for which the first thread of a process was ready and had no core (Linux, else 0).

    Beside much other work a rank that imports a module has next to none, and waits for nobody.
    """
    path = f"/proc/{pid}/task/{pid}/schedstat"
    with contextlib.suppress(OSError), open(path, "rb") as file:  # an encoding may be an import
        return on_cores(file.read())[1]
    return 0.0


def _stuck(does, pid, others):
    """For what the main thread waits that nobody can bring: a "lock", where all ``others`` are
    threads of ours, or a "worker" of a loader that itself waits so. None if there is no such."""
    if does == "waits" or interrupted_later():
        return None
    if waits_for_ever(pid) and all(_is_ours(frame) for frame in others):
        return "lock"
    return "worker" if does == "loader" and stuck_children(pid) else None


def _is_ours(frame):
    """Whether a thread is one that this package has started."""
    outermost = frame
    while frame:
        if frame.f_code.co_filename != threading.__file__:
            outermost = frame
        frame = frame.f_back
    return outermost.f_code.co_filename.startswith(PACKAGE)


def stack(error) -> list[tuple[str, int | None, str]]:
    """[(file, line, function)] of what was raised, from the outside in: see ``Log.ended``."""
    return [(entry.filename, entry.lineno, entry.name) for entry in extract_tb(error.__traceback__)]


def _mapped(path):
    """A new file, mapped; its room is taken at once: a write to a full disk would be a crash."""
    size = PLACE * (FIRST + CALLS)
    with open(path, "wb+") as file:
        file.truncate(size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)


def doing(frame) -> str:
    """What a thread at ``frame`` does: "waits" for ranks, "loader", "lock" or "own"."""
    while frame.f_code.co_filename.endswith(BETWEEN) and frame.f_back:
        frame = frame.f_back
    file = frame.f_code.co_filename
    waits = file.startswith(HOOKS) or DISTRIBUTED in file or file.endswith(DDP)
    if waits or frame.f_code.co_name == BACKWARD:
        return "waits"
    inner = frame
    for _ in range(ABOVE):
        if frame is None:
            break
        if LOADER in frame.f_code.co_filename:
            return "loader"
        frame = frame.f_back
    return "lock" if os.path.basename(inner.f_code.co_filename) in LOCKS else "own"
