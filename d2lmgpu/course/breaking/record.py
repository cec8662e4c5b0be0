"""The recorded run of the break-it lab, which pages show; and the scripts that draw it.

``pytest -s tests/cluster/record_breaking.py`` makes it again, as root on Linux.
"""

from html import escape

from d2lmgpu.figures.site import embedded, inlined, joined, widget
from d2lmgpu.records import store

STEM = "breaking"
LAB, OWN = "lab/web/", "course/breaking/web/"
STYLES = (f"{LAB}lab.css", f"{OWN}breaking.css")
SCRIPTS = (
    *(f"{LAB}{name}" for name in ("words.js", "theme.js", "line.js", "choice.js")),
    f"{OWN}breaking.js",
)
IN_PAGE = f"{OWN}breaking-page.js"


def module() -> str:
    """The scripts as one ES module, which shows a widget as a lab."""
    return widget("BreakingLab", *SCRIPTS)


def styles() -> str:
    """The styles as one text."""
    return joined(*STYLES)


def recorded(folder=store.FOLDER) -> dict:
    """What is shown of the record: outcomes, and where they are from."""
    path = next(folder.glob(f"*-{STEM}.json"))
    record = store.read(path)
    if "outcomes" not in record or "data" not in record:
        raise store.RecordError(f"{path} is no record of the break-it lab: it has no outcomes.")
    machine = record["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, {record['date']}: {record['data']}."
    return {"outcomes": record["outcomes"], "provenance": where}


def quantity(value, unit) -> str:
    """A number with its unit, as HTML; where it is not known, a dash."""
    return "–" if value is None else escape(f"{value:.3g} {unit}")


class Page:
    """The lab in a built page; a plain table for those without scripts."""

    def __repr__(self):
        return recorded()["provenance"]

    def _repr_html_(self):
        shown = recorded()
        note = "In a live notebook you press the buttons yourself. Here is one run, recorded on"
        shown["provenance"] = f"{note} {shown['provenance']}"
        files = " ".join(name.rpartition("/")[2] for name in (*SCRIPTS, IN_PAGE))
        head = "<tr><td></td><th>predicted</th><th>recorded</th></tr>"
        tables = "".join(
            f"<table><caption>{escape(outcome['title'])}</caption>{head}"
            + "".join(
                f"<tr><th>{escape(label)}</th><td>{quantity(predicted, unit)}</td>"
                f"<td>{quantity(measured, unit)}</td></tr>"
                for label, unit, predicted, measured in outcome["rows"]
            )
            + "</table>"
            for outcome in shown["outcomes"]
        )
        return (
            f"{inlined(*STYLES)}"
            f'<div class="breaking-recorded" data-scripts="{files}">'
            f'<script type="application/json">{embedded(shown)}</script>'
            f"<p>{escape(shown['provenance'])}</p>{tables}</div>"
            f"{inlined(*SCRIPTS, IN_PAGE)}"
        )
