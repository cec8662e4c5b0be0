"""What the chapters say was not run on a GPU: each mark, with its page and its section.

The list is made of the marks themselves: in the notebooks' text "not yet run by us", "not run
here", "not been run on this page", "nothing of this has run here", and the like; and the signs of
the cells that take GPUs.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from d2lmgpu.course.gpu_cells import UNRUN, gpu_cells
from d2lmgpu.records.run import counted

MARK = re.compile(
    r"\b(?:[Nn]ot\s+(?:yet\s+)?(?:been\s+)?run\s+(?:on\s+any\s+)?"
    r"|[Nn]othing\s+of\s+this\s+(?:page\s+)?has\s+run\s+)"
    r"(?:by\s+us|here|on\s+this\s+page|on\s+a\s+GPU)\b"
)
BLOCK = re.compile(r"\n\n+|\n(?=[-|] )")  # paragraphs, rows of a table, entries of a list
SENTENCE = re.compile(r"(?<=[.:!?])[)*]*\s+(?=[*(`[]*[A-Z`])")
BEFORE = re.compile(r"[*(]*(?:It|That|They|These|This|Such|Not)\b")  # what it is of is said before


@dataclass(frozen=True)
class Unrun:
    """A statement, and where it stands."""

    page: str  # its path in the folder of chapters
    section: str  # its nearest heading
    statement: str  # as plain text; of a row of a table, what its first column says


def unrun(folder) -> list[Unrun]:
    """All marks in the notebooks of a folder of chapters, in the order of pages and texts."""
    folder, marks = Path(folder), []
    cells = {(cell.page, cell.number): cell for cell in gpu_cells(folder)}
    for path in sorted(folder.rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        section, page = "", path.relative_to(folder).as_posix()
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            gpu_cell = cells.get((page, number))
            if gpu_cell and gpu_cell.sign == UNRUN:
                gpus = counted(gpu_cell.gpus, "GPU")
                words = f"a cell that takes {gpus}: make gpu-check runs it there"
                marks.append(Unrun(page, section, words))
            if cell["cell_type"] != "markdown":
                continue
            for part in re.split(r"(?m)^(?=#{1,3} )", "".join(cell["source"])):
                heading = re.match(r"#{1,3} (.*)\n*", part)
                section = heading[1] if heading else section
                text = part[heading.end() :] if heading else part
                marks += [Unrun(page, section, plain(words)) for words in marked(text)]
    return marks


def marked(text) -> Iterator:
    """The statements with a mark, one for each mark; of a row of a table its first column."""
    for block in BLOCK.split(text):
        if block.startswith("|"):
            yield from (block.split("|")[1] for _ in MARK.findall(block))
            continue
        before = ""
        for sentence in SENTENCE.split(block):
            whole = f"{before} {sentence}" if BEFORE.match(sentence) else sentence
            yield from (whole for _ in MARK.findall(sentence))
            before = sentence


def plain(statement) -> str:
    """Without links, emphasis and code marks."""
    statement = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", statement)
    return " ".join(re.sub(r"^- |[*`]|<!--.*?-->", "", statement).split())


def main(folder) -> int:
    """Print the list."""
    marks = unrun(folder)
    print(f"The chapters mark {len(marks)} things as not run on a GPU:")
    for mark in marks:
        print(
            textwrap.fill(
                f"{mark.page}, {mark.section}: {mark.statement}", 88, subsequent_indent="  "
            )
        )
    return 0
