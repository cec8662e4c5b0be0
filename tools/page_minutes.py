"""Estimates how long a page takes, beside which a test holds the minutes that the page says.

That is 200 words of prose or 15 visible lines of code a minute, five minutes for each lab,
explorer, training panel or experiment that the page asks for, and the seconds that its cells took
when they were last recorded: after `make book`, python tools/page_minutes.py. All is rounded to
five minutes.
"""

import json
import re
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from sphinx_external_toc.parsing import parse_toc_yaml

from d2lmgpu.records import store

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "records" / "cpu-2-cores-pages.json"
WORDS, LINES, TRYING = 200, 15, 5  # words a minute, lines a minute, minutes a thing to try
FOLDED = {"hide-input", "remove-input"}  # tags of cells whose code is not shown
NO_PROSE = r"```.*?```|\$\$.*?\$\$|<[^>]*>|\]\([^)]*\)"


def estimate(notebook: nbformat.NotebookNode, experiments: int, seconds: float) -> int:
    """The minutes that it takes to read a page, to try what it asks for, and to run its cells."""
    prose = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [cell.source for cell in code if not FOLDED & {*cell.metadata.get("tags", [])}]
    words = len(re.findall(r"[A-Za-z][\w'’-]*", re.sub(NO_PROSE, "", prose, flags=re.DOTALL)))
    lines = sum(bool(line.strip()) for source in shown for line in source.splitlines())
    tried = prose.count('class="training"') + experiments
    tried += sum(len(re.findall(r"\b(?:Explorer|TrainingLab)\(", cell.source)) for cell in code)
    return 5 * round((words / WORDS + lines / LINES + TRYING * tried + seconds / 60) / 5)


def recorded() -> dict[str, float]:
    """{page: the seconds of its cells}, without pages that are newer than the record."""
    return json.loads(RECORD.read_text(encoding="utf-8"))["seconds"]


def record(cache: Path = ROOT / "_build" / ".jupyter_cache") -> None:
    """Write down what the cells of each page took in the book that was built."""
    seconds = {}
    for run in get_cache(cache).list_cache_records():
        page = run.uri[run.uri.rindex("/chapters/") + 1 :].partition(".")[0]
        seconds[page] = round(run.data["execution_seconds"], 1)
    pages = parse_toc_yaml(ROOT / "_toc.yml")
    notebooks = [page for page in pages if (ROOT / f"{page}.ipynb").exists()]
    if missing := [page for page in notebooks if page not in seconds]:
        raise SystemExit(f"Not run in this book: {', '.join(missing)}. Run make book first.")
    content = store.provenance("python tools/page_minutes.py") | {"seconds": seconds}
    RECORD.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
