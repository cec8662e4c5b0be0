"""Builds the book: every chapter that is not kept is run, then all pages are made.

A chapter that fails costs that chapter: its page says so at its head, the others are as they
should be, and the exit status is 1. It is 2 where there are no pages, as after a warning, and
130 after Ctrl+C. What was run is kept in ``_build`` (``chapter_cache.py``). `make test` lets
nbval run chapters on little data, and what they put out is kept there, too
(``nbval_plugins.py``), unless ``make book`` has run them. ``--tested`` builds the book of either.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import chapter_facts
import nbformat
from chapter_cache import ChapterCache
from chapter_facts import FactsError
from jupyter_kernels import AsyncKernelManager
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from sphinx_external_toc.parsing import parse_toc_yaml

from d2lmgpu.data.files import DataError

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 900  # seconds for one cell
COLOURS = r"\x1b\[[\d;]*m"
ELSEWHERE = "records/cpu-2-cores-pages.json"  # what the chapters took there
LITTLE = 0.3  # what the tests' data takes, of what the others' takes
PAGES = 60  # seconds for the pages of a book that nobody has built here


def turn_to_little_data(root: Path = ROOT) -> bool:
    """Choose the tests' profile, unless `make book` has run the chapters in its own; whether so."""
    chosen = os.environ.get("D2LMGPU_PROFILE") == "test"
    little = chosen or not ChapterCache(root).is_of_these_settings()
    if little:
        os.environ["D2LMGPU_PROFILE"] = "test"
    return little


def chapters(root: Path) -> dict[str, tuple[Path, nbformat.NotebookNode]]:
    """{page: its file, its notebook as Sphinx reads it} of all pages with code, in their order."""
    notebooks = {}
    for page in parse_toc_yaml(root / "_toc.yml"):
        for path in (root / f"{page}.ipynb", root / f"{page}.md"):
            if path.exists():
                text = path.read_text(encoding="utf-8")
                reader = create_nb_reader(str(path), MdParserConfig(), NbParserConfig(), text)
                if reader:
                    notebooks[page] = path, reader.read(text)
    return {page: of for page, of in notebooks.items() if _code(of[1])}


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


class Times:
    """What each chapter took here the last time, else on another machine, in seconds."""

    def __init__(self, root: Path):
        self.file = root / ".cache" / "book-seconds.json"
        self.profile = os.environ.get("D2LMGPU_PROFILE") or "auto"
        self.local = {}
        with suppress(OSError, ValueError):
            self.local = json.loads(self.file.read_text(encoding="utf-8"))
        elsewhere = {}
        with suppress(OSError):
            elsewhere = json.loads((root / ELSEWHERE).read_text(encoding="utf-8"))["seconds"]
        share = LITTLE if self.profile == "test" else 1
        self.elsewhere = {page: seconds * share for page, seconds in elsewhere.items()}
        self.elsewhere["pages"] = PAGES
        self.expected, self.took = 0.0, 0.0

    def of(self, page: str) -> float:
        """What a page will take: of one that has not run here, as fast as the others were."""
        mine = self.local.get(self.profile, {})
        if page in mine:
            return mine[page]
        pace = self.took / self.expected if self.expected else 1
        return self.elsewhere.get(page, 20.0) * pace

    def learn(self, page: str, seconds: float) -> None:
        if page not in self.local.get(self.profile, {}):
            self.expected += self.elsewhere.get(page, 20.0)
            self.took += seconds
        self.local.setdefault(self.profile, {})[page] = round(seconds, 1)
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps(self.local, indent=1), encoding="utf-8")

    @property
    def source(self) -> str:
        return "by the last time" if self.local.get(self.profile) else "by a machine with two cores"


def minutes(seconds: float) -> str:
    """In words, as a clock on the wall would be read."""
    if seconds < 60:
        return "less than a minute"
    return "about a minute" if seconds < 90 else f"about {round(seconds / 60)} minutes"


def execute(notebook, folder) -> None:
    """Run a chapter; Ctrl+C ends its kernel at once, and with it its workers."""
    place = {"metadata": {"path": str(folder)}}
    options = {"timeout": LONGEST, "record_timing": False, "resources": place}
    client = NotebookClient(notebook, kernel_manager_class=AsyncKernelManager, **options)
    with ThreadPoolExecutor(1) as thread:  # in the main one it would take Ctrl+C for a dead kernel
        running = thread.submit(client.execute)
        try:
            running.result()
        except KeyboardInterrupt:
            with suppress(AttributeError, OSError):  # it has not begun, or is over
                client.km.provisioner.process.kill()
            raise


def failure(error, notebook) -> str:
    """The line of a chapter that failed, and with what."""
    text = re.sub(COLOURS, "", str(error)).strip()
    arrows = [line.split(" ", 1) for line in text.splitlines() if re.match(r"-+> *\d+ ", line)]
    fault = text.splitlines()[-1] if text else type(error).__name__
    if isinstance(error, CellExecutionError):
        fault = f"{error.ename}: {re.sub(COLOURS, '', error.evalue)}".splitlines()[0]
    line = re.sub(r"^-*>? *\d+ ", "", " ".join(arrows[0])).strip() if arrows else ""
    return f"{fault}, at {line}" if line else fault


def run(kept: ChapterCache, missing: dict, times: Times) -> dict[str, str]:
    """Run these chapters and keep them; {page: how it failed}."""
    failed = {}
    left = [*missing, "pages"]
    os.environ.update(kept.environment())
    for number, (page, (path, notebook)) in enumerate(missing.items(), 1):
        rest = minutes(sum(map(times.of, left)))
        print(f"chapter {number} of {len(missing)}, {rest} left: {page}", flush=True)
        for cell in _code(notebook):
            cell.outputs, cell.execution_count = [], None
        began, problem = time.time(), ""
        try:
            execute(notebook, path.parent)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            problem = failed[page] = failure(error, notebook)
            log = log_of(kept, page)
            log.parent.mkdir(exist_ok=True)
            log.write_text(re.sub(COLOURS, "", str(error)), encoding="utf-8")
            print(f"  failed: {problem}", flush=True)
        seconds = time.time() - began
        kept.put(notebook, path, seconds, began, problem)
        (kept.build / ".doctrees" / f"{page}.doctree").unlink(missing_ok=True)
        left.remove(page)
        if not problem:
            times.learn(page, seconds)
    return failed


def log_of(kept: ChapterCache, page: str) -> Path:
    return kept.build / "logs" / f"{page.replace('/', '-')}.txt"


def build(kept: ChapterCache, failed: dict[str, str]) -> int:
    """Make the pages; failed chapters say so at their heads (``pages/failures.py``)."""
    logs = {page: [fault, str(log_of(kept, page))] for page, fault in failed.items()}
    (kept.build / "failed.json").write_text(json.dumps(logs), encoding="utf-8")
    # This page shows the seconds of all others, so it is made anew with any of them.
    (kept.build / ".doctrees" / "chapters" / "reference" / "status.doctree").unlink(missing_ok=True)
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    status = 1
    try:
        status = subprocess.run(
            [jupyter_book, "build", ".", "-W", "-n", "--keep-going"],
            cwd=kept.root,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl+C is ours
        ).returncode
    finally:
        if status:
            # Sphinx warns only about pages that it reads: without these the next build warns again.
            shutil.rmtree(kept.build / ".doctrees", ignore_errors=True)
    return status


def make(root: Path) -> int:
    chapter_facts.chapters(root)
    for tool in ("page_images.py", "first_cells.py", "course_map.py"):
        subprocess.run([sys.executable, Path(__file__).with_name(tool)], cwd=root, check=True)
    if "--tested" in sys.argv:
        turn_to_little_data(root)
    kept = ChapterCache(root)
    kept.begin()
    times = Times(root)
    missing = {page: of for page, of in chapters(root).items() if kept.find(of[1]) is None}
    if missing:
        expected = minutes(sum(map(times.of, [*missing, "pages"])))
        print(f"{len(missing)} chapters to run, then the pages: {expected} ({times.source}).")
    failed = run(kept, missing, times)
    began = time.time()
    if build(kept, failed):
        print("The book was not built: see the warnings above.", file=sys.stderr)
        return 2
    if missing and not failed:
        times.learn("pages", time.time() - began)
    print(f"The book is built: {(kept.build / 'html' / 'index.html').as_uri()} (or: make serve)")
    if not failed:
        return 0
    again = "The next make book runs what failed again:"
    print(f"But {len(failed)} of its chapters failed. {again}", file=sys.stderr)
    for page, fault in failed.items():
        print(f"{page}: {fault}\n    {log_of(kept, page)}", file=sys.stderr)
    return 1


def main() -> int:
    try:
        return make(ROOT)
    except KeyboardInterrupt:
        print("\nInterrupted: the next make book goes on from what was run.", file=sys.stderr)
        return 130
    except (DataError, FactsError, OSError, subprocess.CalledProcessError) as error:
        print(f"The book was not built: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
