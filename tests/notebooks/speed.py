"""Sentences that say how fast something is, and what each of them is tied to.

A sentence with one of `WORDS` is tied if

- its paragraph cites something, or links to another site;
- or one of the two code cells before or after it, in the same section, is a check: it asserts an
  order or a closeness of `QUANTITIES`, or prints numbers of them that every test compares. What is
  said to be faster or slower (`FASTER`) needs a check of `TIMES`: one of bytes or of a loss will
  not do;
- or its paragraph has a marker in the source, which no page shows:
  ``<!-- checked: Title of a section -->`` where that section of the page, or of the page before a
  ``#``, has such a check; or a record, ``records/name.json``; or a test, ``tests/file.py::name``.

All others stand in speed_reasons.yml, each with the reason why it stands there.
"""

import ast
import re
from dataclasses import dataclass, field

from notebooks import ROOT, read, tags, tree

NUMBER = r"(?:\d[\d.,]*|\$|two|three|four|five|six|seven|eight|nine|ten|many|hundred|thousand)"
WORDS = re.compile(
    r"\b(?:faster|slower|percent of|nearly all|twice as|half as)\b|\d ?% of\b"
    rf"|{NUMBER} times (?:the|that|what|more|less|as|its|[a-z]+er)\b|\b\d[\d.,]* times\b"
    r"|\btimes as\b",
    re.IGNORECASE,
)
TIED = re.compile(r"\]\(https?://")
MARKER = re.compile(r"<!-- checked: (.+?) -->")
NO_PROSE = re.compile(r"<!--.*?-->|\$\$.*?\$\$|`[^`]*`|\]\([^)]*\)|<[^>]*>", re.DOTALL)
FENCE = re.compile(r"^(```|~~~|:::).*?^\1\s*$", re.DOTALL | re.MULTILINE)
FASTER = re.compile(r"\b(?:faster|slower|as (?:fast|slow|long))\b", re.IGNORECASE)
TIMES = re.compile(
    r"second|\btimes?\b|_times?\b|timed|timer|speed|\bms\b|µs|\brates?\b|_rate|settings|slow|late|"
    r"wait|ahead|queued|throughput|efficien|exchange|exposed|modelled|measured|taken",
    re.IGNORECASE,
)
QUANTITIES = re.compile(
    TIMES.pattern + r"|rate|time|step|bytes|byte|sent|\bMB\b|\bGB\b|error|epoch|num_rounds|"
    r"\brounds\b|loss|share|wast",
    re.IGNORECASE,
)
CLOSE = {"isclose", "allclose", "approx", "array_equal"}
NEAR = 2  # code cells on either side


@dataclass
class Section:
    """From one heading to the next, of any level: paragraphs and code cells in their order."""

    title: str
    parts: list = field(default_factory=list)  # a text, or a code cell


def sections_of(path) -> list[Section]:
    """Of a page, a notebook or Markdown."""
    sections = [Section("")]
    if path.suffix == ".md":
        _add(sections, path.read_text())
        return sections
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            _add(sections, cell.source)
        else:
            sections[-1].parts.append(cell)
    return sections


def _add(sections, source):
    for block in re.split(r"\n\s*\n|\n(?=[-*|] |\d+\. |#)", FENCE.sub("", source)):
        heading, _, rest = block.partition("\n")
        if re.match(r"#+ ", heading):
            sections.append(Section(heading.lstrip("#").strip()))
            block = rest
        if block.strip():
            sections[-1].parts.append(block)


def claims(paragraph) -> list[str]:
    """The sentences of a paragraph that say how fast something is."""
    prose = " ".join(NO_PROSE.sub(" ", paragraph).split())
    sentences = re.split(r"(?<=[.!?:])\s+", prose)
    return [s for s in sentences if WORDS.search(s) and not s.endswith("?")]


def is_check(cell, of=QUANTITIES) -> bool:
    """Whether a code cell asserts or prints, checked, how much there is ``of`` something."""
    if "nbval-check-output" in tags(cell):
        printed = "".join(str(output.get("text", "")) for output in cell.outputs)
        if re.search(r"\d", printed) and of.search(printed):
            return True
    asserted = [node for node in ast.walk(tree(cell)) if isinstance(node, ast.Assert)]
    return any(
        of.search(ast.unparse(node)) and any(map(_orders, ast.walk(node.test))) for node in asserted
    )


def _orders(node):
    if isinstance(node, ast.Compare):
        return any(isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE) for op in node.ops)
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", getattr(node.func, "id", "")) in CLOSE
    return False


def untied(path) -> list[str]:
    """The sentences of a page about speed that nothing is tied to."""
    left = []
    sections = sections_of(path)
    for section in sections:
        for i, part in enumerate(section.parts):
            if not isinstance(part, str) or TIED.search(part) or MARKER.search(part):
                continue
            before = [x for x in section.parts[:i] if not isinstance(x, str)][-NEAR:]
            after = [x for x in section.parts[i:] if not isinstance(x, str)][:NEAR]
            for claim in claims(part):
                of = TIMES if FASTER.search(claim) else QUANTITIES
                if not any(is_check(cell, of) for cell in before + after):
                    left.append(claim)
    return left


def wrong_markers(path) -> list[str]:
    """Markers of a page that name nothing, or a section without a check."""
    return [
        mark
        for section in sections_of(path)
        for part in section.parts
        if isinstance(part, str)
        for mark in MARKER.findall(part)
        if not _exists(path, mark)
    ]


def _exists(path, mark):
    if mark.startswith("records/"):
        return (ROOT / mark).is_file()
    if mark.startswith("tests/"):
        file, _, name = mark.partition("::")
        return (ROOT / file).is_file() and f"def {name}(" in (ROOT / file).read_text()
    page, _, title = mark.rpartition("#")
    of = sections_of((path.parent / page).resolve() if page else path)
    return any(
        section.title == title
        and any(not isinstance(part, str) and is_check(part) for part in section.parts)
        for section in of
    )
