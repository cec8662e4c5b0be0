"""The cells of the chapters that take GPUs: found, run by ``make gpu-check``, and signed.

Such a cell is tagged ``takes-1-gpu`` or ``takes-2-gpus``. Where there are too few it prints that.
Its first line is a sign: `UNRUN`, or on which GPUs just this code has run, by a record. What the
page defines above it (cells tagged ``save`` or ``define``) belongs to its code.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from d2lmgpu.course import chapters
from d2lmgpu.records import store
from d2lmgpu.records.run import counted

TAGS = {"takes-1-gpu": 1, "takes-2-gpus": 2}
UNRUN = "# Written for GPUs, not yet run by us."
SIGN = re.compile(re.escape(UNRUN) + r"|# Run on .+ with PyTorch \S+, \d{4}-\d\d-\d\d\.")
TOO_FEW = "This cell takes "  # so begins what a cell prints where there are too few
STEM = "gpu-cells"  # of the records
LIMIT = 300  # seconds: the longest cell waits for a watchdog


@dataclass(frozen=True)
class GpuCell:
    """A cell that takes GPUs."""

    page: str  # its path in the folder of chapters
    number: int  # of the cell in its notebook
    section: str  # its nearest heading
    gpus: int  # so many it takes
    sign: str  # its first line
    code: str  # the lines below
    definitions: tuple[str, ...]  # the code of the page's cells above that define something

    @property
    def program(self) -> str:
        """All of its code, which runs by itself in the page's folder."""
        return "\n\n".join((*self.definitions, self.code)) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the program: a record is of this code, and of no other."""
        return hashlib.sha256(self.program.encode()).hexdigest()


def gpu_cells(folder) -> list[GpuCell]:
    """The cells of the notebooks in a folder of chapters that take GPUs.

    Raises ValueError for one whose first line is no sign.
    """
    cells = []
    for path in sorted(Path(folder).glob("*/*.ipynb")):
        page, section, above = path.relative_to(folder).as_posix(), "", ()
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            source, tags = "".join(cell["source"]), {*cell["metadata"].get("tags", [])}
            if cell["cell_type"] == "markdown":
                section = (re.findall(r"(?m)^#{1,3} (.*)", source) or [section])[-1]
            elif tags & chapters.TAGS:
                above += (source,)
            for tag in tags & TAGS.keys():
                first, _, code = source.partition("\n")
                if not SIGN.fullmatch(first):
                    raise ValueError(f"{page}, cell {number}: begin with {UNRUN!r}, not {first!r}")
                cells.append(GpuCell(page, number, section, TAGS[tag], first, code, above))
    return cells


def kept_records(folder) -> list[dict]:
    """What `check_cells` has written to a folder of records."""
    return [store.read(path) for path in sorted(Path(folder).glob(f"*-{STEM}.json"))]


def sign(cell: GpuCell, records) -> str:
    """The first line that the records of `check_cells` give it."""
    for record in records:
        for row in record["cells"]:
            if row["digest"] == cell.digest and row["problem"] is None:
                gpus = [name.split(": ")[-1] for name in record["machine"]["gpus"]]
                machine = " and ".join(f"{gpus.count(n)} x {n}" for n in dict.fromkeys(gpus))
                version, day = record["versions"]["torch"], record["date"].split()[0]
                return f"# Run on {machine} with PyTorch {version}, {day}."
    return UNRUN


def run(cell: GpuCell, folder, python=sys.executable) -> dict:
    """Run a cell in its page's folder; a row of the record.

    Its ``problem`` is None, or the last line that it wrote to stderr.
    """
    place = (Path(folder) / cell.page).resolve().parent
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(_paths(place))}
    start = monotonic()
    with tempfile.TemporaryDirectory() as home:
        program = Path(home, "cell.py")
        program.write_text(cell.program, encoding="utf-8")
        command = [python, str(program)]
        options = {"cwd": place, "env": environ, "text": True, "capture_output": True}
        try:
            done = subprocess.run(command, timeout=LIMIT, **options)
        except subprocess.TimeoutExpired:
            output, problem = "", f"not done after {LIMIT} s"
        else:
            output, errors = done.stdout, done.stderr.strip().splitlines()
            last = errors[-1] if errors else f"exit code {done.returncode}"
            problem = last if done.returncode else None
            if any(line.startswith(TOO_FEW) for line in output.splitlines()):
                problem = "it finds too few GPUs"
    row = {"page": cell.page, "section": cell.section, "gpus": cell.gpus, "digest": cell.digest}
    return row | {"seconds": round(monotonic() - start, 1), "output": output, "problem": problem}


def _paths(place):
    """Where Python looks for modules: those beside a page, and this package."""
    package = str(Path(__file__).resolve().parents[2])
    return [str(place), package, *filter(None, [os.environ.get("PYTHONPATH")])]


def check_cells(folder, gpus: int, python=sys.executable) -> int:
    """Run the cells for which there are GPUs enough, print how each ends, and record it.

    Returns 1 if one of them has a problem, else 0.
    """
    rows = []
    for cell in gpu_cells(folder):
        where = f"{cell.page}, {cell.section}"
        if cell.gpus > gpus:
            print(f"{where}: not run, it takes {counted(cell.gpus, 'GPU')}", flush=True)
            continue
        rows.append(run(cell, folder, python))
        problem = rows[-1]["problem"]
        end = f"failed: {problem}" if problem else f"ran in {rows[-1]['seconds']:.0f} s"
        print(f"{where}: {end}", flush=True)
    record = store.provenance("make gpu-check") | {"kind": "measured", "cells": rows}
    print("Written to", store.write("records", STEM, record))
    return int(any(row["problem"] for row in rows))
