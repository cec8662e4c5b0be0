"""Draws the first page's map of the course: python tools/course_map.py, in the course's folder.

Into assets/course-map.html goes one stop a chapter, in the order of _toc.yml: the device in the
colour of its framework, the title, what the page is about, and its minutes as a number and as a
bar, all as the chapter says them (chapter_facts.py). Into chapters/intro.md goes the list that a
notebook shows instead. `make book` draws both.
"""

import sys
from html import escape
from itertools import groupby
from pathlib import Path

from chapter_facts import Chapter, FactsError, chapters

from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import BLUE, GREEN, VERMILION

FILE, PAGE = Path("assets", "course-map.html"), Path("chapters", "intro.md")
LIST = '<div data-drawn="../assets/course-map.html">\n\n', "\n\n</div>"  # what is around it
COLORS = {"PyTorch": BLUE, "MXNet": VERMILION, None: GREEN}
NEITHER = "no framework, or both"


def icon(color: str) -> str:
    return (
        f'<svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">'
        f"{device(16, 16, 22, color)}</svg>"
    )


def stop(chapter: Chapter) -> str:
    """A chapter as a link."""
    facts = chapter.facts
    prefix = f"{facts.framework}, " if facts.framework else ""
    return (
        f'<li><a href="{chapter.name}.html">{icon(COLORS[facts.framework])}'
        f"<span><b>{escape(chapter.short)}</b> {escape(facts.idea)}</span>"
        f'<small style="--minutes:{facts.minutes}">{prefix}{facts.minutes} minutes</small></a></li>'
    )


def by_part(every: dict[str, Chapter]) -> dict[str, list[Chapter]]:
    """{title of a part: its chapters}"""
    return {part: [*group] for part, group in groupby(every.values(), lambda chapter: chapter.part)}


def course_map(every: dict[str, Chapter]) -> str:
    """The map as HTML: a list of parts, each a list of links."""
    key = "".join(f"<span>{icon(color)}{name or NEITHER}</span>" for name, color in COLORS.items())
    rows = [
        f"<li><p>{escape(part)}</p><ol>{''.join(map(stop, group))}</ol></li>"
        for part, group in by_part(every).items()
    ]
    return "\n".join(
        [
            '<nav class="course-map" aria-label="Map of the course">',
            f"<p>{key}</p>",
            "<ol>",
            *rows,
            "</ol>",
            "</nav>\n",
        ]
    )


def first_page(text: str, every: dict[str, Chapter]) -> str:
    """The text of the first page with the list of these chapters; FactsError without its place."""
    start, end = LIST
    if start not in text:
        raise FactsError(f"{PAGE} has no place for the map: {start.strip()}")
    rows = [
        f"- {part}: {', '.join(f'[{chapter.short}]({chapter.name}.ipynb)' for chapter in group)}"
        for part, group in by_part(every).items()
    ]
    before, _, rest = text.partition(start)
    return before + start + "\n".join(rows) + end + rest.partition(end)[2]


def write(root: Path) -> None:
    """Draw the map of the course in the folder ``root``; without parts it has none."""
    if every := chapters(root):
        (root / FILE).write_text(course_map(every), encoding="utf-8")
        text = (root / PAGE).read_text(encoding="utf-8")
        (root / PAGE).write_text(first_page(text, every), encoding="utf-8")


if __name__ == "__main__":
    try:
        write(Path.cwd())
    except FactsError as error:
        sys.exit(str(error))
