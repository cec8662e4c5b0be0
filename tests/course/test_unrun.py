"""The list of what was not run on GPUs has every mark, and every mark is one that it knows."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from d2lmgpu.__main__ import main
from d2lmgpu.course.gpu_cells import UNRUN, gpu_cells
from d2lmgpu.course.unrun import MARK, unrun

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
# "Not run" in other words: up to two more between them.
ANY = re.compile(
    r"(?<!does )(?<!do )(?<!may )(?<!will )(?<!can)\b(?:not|never)\b(?:\s+[\w`]+){0,2}\s+run\b|"
    r"\b(?:nothing|none|nobody)\b(?:\s+[\w`]+){0,4}\s+(?:has|have)\s+run\b|"
    r"\bunrun\b|\buntested\b",
    re.IGNORECASE,
)


def texts():
    """(page, text) of every cell of words."""
    for path in sorted(CHAPTERS.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "markdown":
                    yield path.relative_to(CHAPTERS).as_posix(), "".join(cell["source"])


def test_no_page_says_it_in_words_that_are_no_mark():
    other = [
        f"{page}: {match[0]}"
        for page, text in texts()
        for match in ANY.finditer(MARK.sub("", text))
    ]
    assert other == []


def test_the_list_has_every_mark():
    statements, marks = unrun(CHAPTERS), Counter()
    for page, text in texts():
        marks[page] += len(MARK.findall(text))
    for cell in gpu_cells(CHAPTERS):
        marks[cell.page] += cell.sign == UNRUN
    assert +marks == Counter(statement.page for statement in statements) and len(statements) > 15
    assert all(statement.section and statement.statement for statement in statements)


def test_code_for_gpus_that_no_cell_runs_stands_in_a_section_with_a_mark():
    sections, section = {}, None
    for page, text in texts():
        for part in re.split(r"(?m)^(?=#{1,2} )", text):
            heading = re.match(r"#{1,2} (.*)", part)
            section = (page, heading[1]) if heading else section
            sections[section] = sections.get(section, "") + part + "\n\n"
    fenced = {
        where: text
        for where, text in sections.items()
        if any(
            re.search("cuda|nccl", code, re.IGNORECASE)
            for code in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
        )
    }
    assert fenced
    # a cell beside it that takes GPUs has a sign of its own
    signed = {(cell.page, cell.section) for cell in gpu_cells(CHAPTERS)}
    assert [where for where in fenced.keys() - signed if not MARK.search(fenced[where])] == []


@pytest.mark.parametrize(
    ("text", "section", "statement"),
    [
        (
            "## A\n\nIt works. On GPUs it does, too (not run here). More.",
            "A",
            "On GPUs it does, too (not run here).",
        ),
        (
            "## A\n\n### B\n\n*This was not\nyet run on any by us.* Next.",
            "B",
            "This was not yet run on any by us.",
        ),
        ("| `a --b` | does c | *not yet run by us* |\n| d | e | f |", "Title", "a --b"),
        (
            "- First.\n- Second does that. It was not run here.",
            "Title",
            "Second does that. It was not run here.",
        ),
        (
            "### C\n\n*Nothing of this has run here.* NCCL waits.",
            "C",
            "Nothing of this has run here.",
        ),
        ("## A\n\nThe host waits. (Not run here.)", "A", "The host waits. (Not run here.)"),
        (
            "See [it](x.md), which has not been run on this page, as it takes a GPU:"
            "\n\n```\nx\n```",
            "Title",
            "See it, which has not been run on this page, as it takes a GPU:",
        ),
    ],
)
def test_a_mark_is_found_wherever_it_stands(tmp_path, capsys, text, section, statement):
    cells = [{"cell_type": "markdown", "source": source} for source in ("# Title\n", text)]
    cells.append({"cell_type": "code", "source": "x = 1  # not run here"})
    cells = [cell | {"metadata": {}} for cell in cells]
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "page.ipynb").write_text(json.dumps({"cells": cells}))
    (mark,) = unrun(tmp_path)
    assert (mark.page, mark.section, mark.statement) == ("part/page.ipynb", section, statement)
    assert main(["gpu-check", "--unrun", str(tmp_path)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert output.endswith(f"part/page.ipynb, {section}: {statement}")


def test_the_page_of_the_status_is_made_of_the_list():
    assert 'unrun("..")' in (CHAPTERS / "reference" / "status.md").read_text(encoding="utf-8")
