"""The recorded run of the break-it lab, which pages show: python -m d2lmgpu.course.breaking.record

makes it again, as root on Linux: it starts the lab and presses one button after the other.
"""

import json
import time
from functools import cache
from html import escape

from d2lmgpu.figures.site import inlined
from d2lmgpu.machine.files import PACKAGE
from d2lmgpu.records import store

STEM = "breaking"
PRESSED = ["worker", "cut", "heal", "slow", "quicken", "fill", "free", "launcher", "host"]
LAB, OWN = "lab/web/", "course/breaking/web/"
STYLES = (f"{LAB}lab.css", f"{OWN}breaking.css")
SCRIPTS = (f"{LAB}words.js", f"{LAB}theme.js", f"{LAB}choice.js", f"{OWN}breaking.js")
IN_PAGE = f"{OWN}breaking-page.js"
RENDER = """
export default {
  render({ model, el }) {
    const lab = new BreakingLab(el, model);
    return () => lab.end();
  },
};
"""
NOTE = "In a live notebook you press the buttons yourself. Here is one run, recorded"
MOST = 300  # seconds for one harm


@cache
def module() -> str:
    """The scripts as one ES module, which shows a widget as a lab."""
    return "\n".join([*(PACKAGE.joinpath(name).read_text() for name in SCRIPTS), RENDER])


@cache
def styles() -> str:
    return "\n".join(PACKAGE.joinpath(name).read_text() for name in STYLES)


def recorded(folder=store.FOLDER) -> dict:
    """What the widget shows of the record: outcomes, and where they are from."""
    record = store.read(next(folder.glob(f"*-{STEM}.json")))
    machine = record["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, {record['date']}: {record['data']}"
    return {"outcomes": record["outcomes"], "provenance": f"{where}. "}


def page() -> str:
    """HTML that shows the record; a plain table for those without scripts."""
    shown = recorded()
    data = json.dumps(shown, separators=(",", ":")).replace("</", "<\\/")
    files = " ".join(name.rpartition("/")[2] for name in (*SCRIPTS, IN_PAGE))
    tables = "".join(_table(outcome) for outcome in shown["outcomes"])
    return (
        f"<p>{NOTE} on {escape(shown['provenance'])}</p>{inlined(*STYLES)}"
        f'<div class="breaking-recorded" data-scripts="{files}">'
        f'<script type="application/json">{data}</script>{tables}</div>'
        f"{inlined(*SCRIPTS, IN_PAGE)}"
    )


def _table(outcome):
    lines = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{_text(predicted, unit)}</td>'
        f"<td>{_text(measured, unit)}</td></tr>"
        for label, unit, predicted, measured in outcome["rows"]
    )
    head = "<tr><th></th><th>predicted</th><th>recorded</th></tr>"
    caption = escape(f"{outcome['title']}: {outcome['said']}")
    return f"<table><caption>{caption}</caption>{head}{lines}</table>"


def _text(value, unit):
    return "" if value is None else f"{value:.2f} s" if unit else f"{value:,}"


def make():
    """The record of a run in which every button is pressed, once what came before is over."""
    from d2lmgpu.course.breaking.view import Running

    running = Running(3)

    def waited_for(found):
        deadline = time.monotonic() + MOST
        while not (result := found()):
            if not running.runs or time.monotonic() > deadline:
                raise SystemExit(f"The lab did not go on: {running.message}")
            time.sleep(0.1)
        return result

    running.start()
    try:
        for name in PRESSED:
            waited_for(lambda: name in running.offered())  # noqa: B023, called at once
            time.sleep(2)
            running.press(name)
            print(waited_for(running.done)["rows"], flush=True)
    finally:
        running.stop()
    return store.provenance("python -m d2lmgpu.course.breaking.record") | {
        "data": "3,000 images of Fashion-MNIST, a batch of 120 over three hosts, 100 Mbit/s",
        "outcomes": running.outcomes,
    }


if __name__ == "__main__":
    print("Written to", store.write("records", STEM, make()))
