"""Run a reader's script under watch and read what its processes saw.

    the caller → a guard → the supervisor (``ranks``) → one ``worker`` a rank → what they start

With a ``template`` the supervisor of the first run stays, and forks those of later ones.
``run`` starts ``processes`` workers with the environment that torchrun would give them. Each loads
an *observer*, then runs the script as ``__main__``. A script that starts processes of its own
(``mp.spawn``, ``multiprocessing``) is watched in those, too; how many they are is its own choice.

The observer is a module of this package, named by the caller. It has

    def observe(watch: d2lmgpu.watch.worker.Watch): ...

which is called once in each process when the script imports PyTorch, before it uses anything of
it (``watch.torch``): what a script sets before that import still counts. It puts its hooks where it
wants them, and leaves what it saw by ``watch.at_end(function)``.

A run ends with the script or at the first of its ``Limits``. However it ends, no process is left,
and the reader's files are as they were (see ``files``).
"""

import errno
import json
import os
import tokenize
from dataclasses import asdict, dataclass, field
from pathlib import Path

from d2lmgpu.machine.checks import Need
from d2lmgpu.machine.hardware import num_cores
from d2lmgpu.process.child import Child, end_in_words
from d2lmgpu.process.hangs.causes import Hang
from d2lmgpu.process.hangs.watcher import Watcher
from d2lmgpu.process.output import TAIL, Bounded, cut
from d2lmgpu.process.settings import TITLES, version_of
from d2lmgpu.watch import MisuseError, WatchError, ranks
from d2lmgpu.watch.files import NONE, NOTES, OF_OTHERS, READ_ONLY, REFUSAL
from d2lmgpu.watch.messages import Job, Report, Settings
from d2lmgpu.watch.progress import Progress

LINE = 200  # bytes of the beginning, and of the end, of the last line that is told
WHY = {errno.EROFS: READ_ONLY, errno.EOVERFLOW: OF_OTHERS}  # errors that a view alone has
OF_GPUS = (
    "The script asks for GPUs ({line}): here they are cores of the CPU under that name, and gloo "
    "is in place of NCCL."
)
NUMBERED = "Cannot access accelerator device"  # what torch.device(0) says without a GPU
BY_NAME = " Write torch.device('cuda', 0): a number alone is a device only where there is a GPU."
UNSEEN = (
    "The script imports {package} (at {where}), which updates or exchanges in ways of its own that "
    "are not watched yet. Give it a DistributedDataParallel in its place for this."
)
UNREPORTED = (
    "What rank {rank} saw cannot be reported, through no fault of the script: {error[text]}"
)
need = Need(MisuseError)


@dataclass(frozen=True)
class Limits:
    """When a watched run is ended, at the latest."""

    steps: int = 60  # updates
    seconds: float = 20.0  # of training, from the first update on
    least: int = 0  # updates that are waited for, even if they take more than those seconds
    # Seconds from the start: on a busy machine the imports alone take a minute, and scripts make
    # data or load a network before they train. One whose ranks wait for each other ends sooner.
    wall: float = 300.0
    records: int = 200_000  # what an observer may hold, see ``Watch.recorded``


@dataclass(frozen=True)
class Watched:
    """What is known of a run. ``reports``: one a rank, in their order, with what observers add."""

    reports: list[Report]
    output: str  # the end of what all processes printed
    codes: list | None  # exit codes of the workers; None for one that was ended
    files: dict[str, bytes] = field(repr=False)  # what observers kept, by name
    note: str | None = None  # what was otherwise than without a watch: files, GPUs; a standstill
    hang: Hang | None = None  # why its ranks waited for each other, if they did

    @property
    def trouble(self) -> str | None:
        """Why the script did not train to its end or to a limit, in a sentence; None if it did."""
        if self.hang:
            return f"It hangs. {self.hang}"
        ends = filter(None, map(self._trouble_of, self.reports))
        if end := next(ends, None):
            return end
        for code in self.codes or ():
            if code is not None and code != 0:
                return f"A process of the script {end_in_words(code)}."
        if not self.reports:
            return "The script was ended before it told anything."
        trained = any(report["steps"] for report in self.reports)
        if not trained and self.reports[0]["end"] == "wall":
            return "The script was stopped at its time limit and had not trained by then."
        if not any(report["imported"] for report in self.reports):
            return "The script never imported PyTorch, and only what PyTorch does is watched."
        if not trained:
            return "The script ended and never trained: no backward pass, no update."
        return None

    def _trouble_of(self, report):
        """Why the script ended on one rank, in a sentence; None if it came to its end there."""
        if report["end"] == "refused":
            return UNSEEN.format(**report)
        if report["end"] == "unreported":
            return UNREPORTED.format(**report)
        if report["end"] == "raised":
            text = report["error"]["text"]
            why = next((f" ({WHY[n]})" for n in WHY if os.strerror(n) in text), "")
            why += BY_NAME if NUMBERED in text else ""
            return f"The script raised {text}{why}"
        if report["end"] == "exit" and report["code"] not in (0, None):
            return f"The script ended itself with exit code {report['code']}: {self.last_line}"
        return None

    @property
    def explanation(self) -> str:
        """``trouble``, with the line that raised or the last one that was printed, and ``note``."""
        return " ".join([self._explanation, *([self.note] if self.note else [])])

    @property
    def _explanation(self):
        if self.hang or any(report["end"] == "refused" for report in self.reports):
            return self.trouble
        raised = [report["error"]["where"] for report in self.reports if "error" in report]
        if raised:
            return f"{self.trouble} (at {raised[0]})" if raised[0] else self.trouble
        return f"{self.trouble} Its last line: {self.last_line}"

    @property
    def last_line(self) -> str:
        """The last line that was printed."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return cut(lines[-1].strip(), LINE, LINE) if lines else "it printed nothing."


def source_of(path) -> str:
    """The text of a Python file, in the encoding that its first lines say, as Python reads it."""
    with tokenize.open(path) as file:
        return file.read()


def check_script(script, framework="torch") -> Path:
    """The script's path. MisuseError unless it is a Python file, and the framework is installed."""
    path = Path(script)
    if not path.is_file():
        raise MisuseError(f"{script}: there is no such file. Give the path of your Python script.")
    try:
        source = source_of(path)
        compile(source, str(path), "exec")
    except (UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise MisuseError(f"{script} is no Python script: {error}.") from None
    if version_of(framework) is None:
        title = TITLES[framework]
        raise MisuseError(
            f"{title} is not installed in this environment: pip install d2lmgpu[{framework}]"
        )
    return path.resolve()


def check_devices(devices, least=1) -> int:
    """``devices`` as a number. MisuseError for more than there are: here a CPU core is a device.

    So many as ``least`` may share a core, where nothing is timed.
    """
    need.whole("devices", devices)
    most = max(least, num_cores())
    if devices > most:
        raise MisuseError(
            f"devices={devices}: this machine has {num_cores()} CPU core{'s' * (num_cores() > 1)}, "
            f"and more processes than cores would take turns. Give at most {most}."
        )
    return int(devices)


def run(
    script,
    arguments,
    processes,
    observer,
    options=None,
    limits=Limits(),
    environ=None,
    own=None,
    framework="torch",
    unprotected=False,
    progress=None,
    template=None,
) -> Watched:
    """Run ``script`` with ``arguments`` (strings) in ``processes`` workers; a ``Watched``.

    observer: the name of its module. options: a dict that JSON can hold, for the observer.
    environ: added to the environment. own: a file of the reader's code, if it is not the script;
    lines of it and of its folder are named. framework: that whose import starts the watch.
    unprotected: run it also where nothing but our own functions protects the reader's files.
    progress: the ``Progress`` of a command that runs several times. template: the ``Template`` of
    one that runs in PyTorch and takes no times.

    Raises WatchError for a script that is not there, and where its files cannot be protected.
    """
    script = check_script(script, framework)
    need.whole("processes", processes)
    output, protected = Bounded(0, TAIL), {}
    number = "1 process" if processes == 1 else f"{processes} processes"
    what = f"{Path(own or script).name} in {number}"
    most = limits.wall + ranks.GRACE
    with template.supervisor() if template else Child(ranks.COMMAND, [], {}) as child:
        settings: Settings = {
            "view": False,
            "begun": 0.0,
            "folder": str(child.folder),
            "observer": observer,
            "options": options or {},
            "script": str(script),
            "own": own or str(script),
            "framework": framework,
            "limits": asdict(limits),
        }
        job: Job = {
            "command": [str(script), *arguments],
            "processes": processes,
            "settings": settings,
            "environ": child.environ | (environ or {}),
            "cwd": os.getcwd(),
            "unprotected": unprotected,
        }
        with (
            Watcher(child.folder, child.kill, os.path.dirname(own or script)) as watcher,
            (progress or Progress()).run(what, most),
        ):
            child.send(json.dumps(job).encode())
            end = child.read(protected.update, output.add, time_limit=most)
        reports = [json.loads(path.read_bytes()) for path in child.folder.glob("report-*.json")]
        files = {path.name: path.read_bytes() for path in child.folder.glob("kept-*")}
        hang = watcher.at_the_end(end["codes"] or ())
        standstill = None if hang else watcher.standstill()
    kind = protected.get("kind")
    if kind == NONE and not unprotected:
        raise WatchError(REFUSAL.format(why=protected["why"]))
    notes = [NOTES[kind].format(why=protected["why"])] if kind in NOTES else []
    notes += [standstill] if standstill else []
    notes += [OF_GPUS.format(line=r["cuda"]) for r in reports if r.get("cuda")][:1]
    # A process that starts others need not train, and says what they raised if none of them did
    # and none of them says it; a rank that raised before it trained counts.
    counts = processes > 1 or not any(report["steps"] for report in reports)
    raised = [report for report in reports if counts and report["end"] == "raised"]
    raised = [report for report in raised if report["spawned"]] or raised
    trained = [r for r in reports if r["steps"] or r["distributed"] or r in raised]
    reports = sorted(trained or reports, key=lambda report: report["rank"])
    return Watched(reports, output.text(), end["codes"], files, " ".join(notes) or None, hang)
