"""Who does what in which step: a lane for each rank or device, a row for each step, time goes down.

The whole picture is drawn here. So it is there without scripts, and on paper; the script beside
this file takes its rows away and brings them back one by one.
"""

from dataclasses import dataclass
from html import escape
from itertools import accumulate

from d2lmgpu.figures.axes import text
from d2lmgpu.figures.motion import Moving
from d2lmgpu.figures.style import COLORS, INK, TINT
from d2lmgpu.figures.svg import WIDTH

TITLE, CELL, SEND, GAP = 16, 22, 9, 9  # heights in pixels
HEAD, EDGE = 18, 2


@dataclass(frozen=True)
class Cell:
    """What a lane does or has in a step; `is_copy` if it is there a second time."""

    text: str
    is_copy: bool = False


@dataclass(frozen=True)
class Row:
    """One step: its title, and words that say all of it.

    cells: what each lane does or has, None for nothing; or no cells. sends: (from lane, to lane,
    bytes), at the same time. meeting: what all lanes do together, written into a bar across them.
    """

    title: str
    words: str
    cells: tuple[Cell | None, ...] = ()
    sends: tuple[tuple[int, int, int], ...] = ()
    meeting: str = ""

    @property
    def parts(self) -> tuple[int, int, int]:
        """The heights of its cells, its sends and its bar."""
        sends = len(self.sends) * SEND + 4 if self.sends else 0
        return CELL * bool(self.cells), sends, (CELL + 3) * bool(self.meeting)


@dataclass(frozen=True)
class Panel:
    """Lanes with these names, and their rows.

    hosts: names of the groups in which the lanes stand, equally many in each; or none.
    """

    name: str
    lanes: tuple[str, ...]
    rows: tuple[Row, ...]
    hosts: tuple[str, ...] = ()

    @property
    def alt(self) -> str:
        return f"{self.name}. " + " ".join(row.words for row in self.rows)


class Swimlanes(Moving):
    """Panels beside each other, whose rows come one by one; equally many rows in each of them.

    before: what there is before the first row. about: how the picture is read.
    """

    def __init__(self, before: str, about: str, *panels: Panel):
        self.panels = panels
        abreast = list(zip(*(panel.rows for panel in panels), strict=True))
        heights = [TITLE + max(sum(row.parts) for row in rows) + GAP for rows in abreast]
        names = any(map(any, (panel.lanes for panel in panels)))
        hosts = any(panel.hosts for panel in panels)
        tops = [HEAD * (names + hosts) + EDGE, *heights]
        *tops, tall = accumulate(tops)
        data = {
            "before": before,
            "panels": [
                {"name": panel.name, "words": [row.words for row in panel.rows]} for panel in panels
            ],
        }
        drawn = "".join(
            f"<figure>{_name(panel, panels)}{_drawn(panel, tops, tall)}</figure>"
            for panel in panels
        )
        words = " ".join(panel.alt for panel in panels)
        body = f'<div class="swimlanes-panels">{drawn}</div>'
        super().__init__("swimlanes", data, words, about, body)


def _name(panel: Panel, panels) -> str:
    return f"<figcaption>{escape(panel.name)}</figcaption>" if len(panels) > 1 else ""


def _drawn(panel: Panel, tops, tall: int) -> str:
    lines = [*_hosts(panel, tall), *_heads(panel, tops[0])]
    for number, (row, top) in enumerate(zip(panel.rows, tops, strict=True)):
        lines += [f'<g data-row="{number}">', *_row(panel, row, top), "</g>"]
    size = f'viewBox="0 0 {WIDTH} {tall}"'
    label = f'role="img" aria-label="{escape(panel.alt)}"'
    return "\n".join([f"<svg {size} {label}>", *lines, "</svg>"])


def _box(x: float, y: float, width: float, height: float, look: str) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size} rx="4" {look}/>'


def _hosts(panel: Panel, tall: int):
    """A frame around the lanes of each host, and the host's name."""
    if not panel.hosts:
        return
    across = WIDTH / len(panel.hosts)
    look = f'fill="none" stroke="{INK}" stroke-opacity="0.5"'
    for number, name in enumerate(panel.hosts):
        yield _box(number * across + 1, 1, across - 2, tall - 2, look)
        yield text((number + 0.5) * across, HEAD - 4, name, "middle")


def _middle(panel: Panel, lane: int) -> float:
    """Where the lane's middle is; lanes of a host stand within its frame."""
    margin = 4 if panel.hosts else 0
    of_each = len(panel.lanes) // max(1, len(panel.hosts))
    host, place = divmod(lane, of_each)
    width = WIDTH / max(1, len(panel.hosts))
    return host * width + margin + (place + 0.5) * (width - 2 * margin) / of_each


def _across(panel: Panel) -> float:
    return _middle(panel, 1) - _middle(panel, 0)


def _color(panel: Panel, lane: int) -> str:
    """That of its place on its host."""
    return COLORS[lane % (len(panel.lanes) // max(1, len(panel.hosts))) % len(COLORS)]


def _heads(panel: Panel, top: int):
    for lane, name in enumerate(panel.lanes):
        yield text(_middle(panel, lane), top - 6, name, "middle")


def _row(panel: Panel, row: Row, top: int):
    yield text(EDGE + 4 * bool(panel.hosts), top + TITLE - 4, row.title, more=' font-weight="600"')
    y, (cells, sends, _) = top + TITLE, row.parts
    for lane, cell in enumerate(row.cells):
        if cell:
            yield from _cell(panel, lane, cell, y)
    for number, (source, target, _) in enumerate(row.sends):
        yield _send(panel, source, target, y + cells + 6 + SEND * number)
    if row.meeting:
        y += cells + sends + 3 * bool(cells or sends)
        yield _box(EDGE, y, WIDTH - 2 * EDGE, CELL, f'fill="none" stroke="{INK}"')
        yield text(WIDTH / 2, y + 15, row.meeting, "middle")


def _cell(panel: Panel, lane: int, cell: Cell, y: int):
    color, middle, width = _color(panel, lane), _middle(panel, lane), _across(panel) - 4
    fill = 'fill="none" stroke-dasharray="4 2"'
    if not cell.is_copy:
        fill = f'fill="{color}" fill-opacity="{TINT}"'
    yield _box(middle - width / 2, y, width, CELL, f'{fill} stroke="{color}"')
    yield text(middle, y + 15, cell.text, "middle")


def _send(panel: Panel, source: int, target: int, y: int) -> str:
    """An arrow, and for the script from where to where something travels."""
    color = _color(panel, source)
    start, end = _middle(panel, source), _middle(panel, target)
    back = -6 if end > start else 6
    head = f"M{end + back:g} {y - 4}L{end:g} {y}L{end + back:g} {y + 4}"
    return (
        f'<g data-send="{source} {target}" stroke="{color}" stroke-width="2" fill="none">'
        f'<circle cx="{start:g}" cy="{y}" r="2.5" fill="{color}"/>'
        f'<path d="M{start:g} {y}H{end:g}{head}"/></g>'
    )
