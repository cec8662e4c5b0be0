"""Draws the first page's map of the course, assets/course-map.html: python tools/course_map.py

One stop a page, in the order of _toc.yml: the device in the colour of its framework, the title,
what the page is about, and its minutes (page_minutes.py) as a number and as a bar.
"""

import re
import sys
from html import escape
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from page_minutes import ROOT, minutes

from d2lmgpu.figures.device import device
from d2lmgpu.figures.style import BLUE, GREEN, VERMILLION

FILE = ROOT / "assets" / "course-map.html"
IDEAS = {
    "foundations/data-parallelism": "why the gradients of the parts add up",
    "scratch/pytorch": "copy, split, compute, add, update: LeNet on two devices",
    "scratch/mxnet": "the same in MXNet",
    "concise/ddp-by-hand": "six collectives, and gradients that leave in buckets",
    "concise/pytorch": "ResNet-18, one process a device",
    "concise/ragged": "the last batch, and normalizing together",
    "concise/streams": "data without an index: who reads what, and who ends first",
    "concise/settings": "what is sent, Adam, bf16 and compiled networks",
    "concise/torchrun": "one process a GPU, and on where it was killed",
    "concise/accumulation": "batches that fit nowhere, gradients with 16 bits",
    "concise/mxnet": "ResNet-18, and an error nobody reports",
    "lab/gluon-mnist": "one training step taken apart",
    "lab/training-lab": "predict, train again, compare",
    "scaling/allreduce": "rings and trees, with every byte counted",
    "scaling/overlap": "how the exchange hides behind the backward pass",
    "scaling/batch-size": "what a larger batch costs, and what it buys",
    "memory/fits": "predict the memory of a step, and measure it",
    "memory/out-of-memory": "read the message, find who holds it, make a step smaller",
    "memory/sharding": "for the network that fits on no GPU",
    "beyond/gpt": "thirty-five lines, counted, and what data parallelism cannot do",
    "beyond/tensor-parallel": "one layer on several devices, by hand and with a plan",
    "beyond/pipelines": "stages, micro-batches and who waits for whom",
    "beyond/long-sequences": "one sequence on several devices, keys on a ring",
    "beyond/experts": "parameters stay, tokens travel to them",
    "beyond/all-at-once": "meshes: who is with whom, and which layout for a thousand GPUs",
    "diagnosis/this-machine": "ten minutes before anything",
    "diagnosis/profile": "the parts of a step, and who waits for whom",
    "diagnosis/traces": "all ranks in one file, and what an exchange hides behind",
    "diagnosis/how-fast": "the share of a device's peak, and what raises it",
    "diagnosis/hangs": "every way to wait for ever",
    "diagnosis/your-own-script": "is it still the same training?",
    "scaling/unequal-devices": "a fast and a slow one, and still one result",
    "scaling/cost-model": "say before a run what it will cost",
    "clusters/many-machines": "several hosts, and the slow link between them",
    "clusters/on-your-cluster": "from the notebook to a job, the queue and a sweep",
    "clusters/when-a-machine-dies": "hosts are killed, and the training goes on",
}
FRAMEWORKS = {
    "PyTorch": (
        BLUE,
        r"concise/(?!mxnet)|scratch/pytorch|memory/|beyond/|diagnosis/|unequal|clusters/[ow]",
    ),
    "MXNet": (VERMILLION, r"mxnet|gluon"),
    "no framework, or both": (GREEN, ""),
}


def parts() -> dict:
    """{title of the part: [(page, its title)]}, as the side bar has them, without the reference."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    return {
        part["caption"]: [(page["file"], page.get("title")) for page in part["chapters"]]
        for part in parts
        if part["caption"] != "Reference"
    }


def framework(page: str) -> str:
    """Whose code is on the page."""
    return next(name for name, (_, pages) in FRAMEWORKS.items() if re.search(pages, page))


def heading(page: str) -> str:
    """The title that a page gives itself."""
    return re.search(r'"# ([^\\"]+)', (ROOT / f"{page}.ipynb").read_text(encoding="utf-8")).group(1)


def icon(color: str) -> str:
    return (f'<svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">'
            f"{device(16, 16, 22, color)}</svg>")  # fmt: skip


def stop(page: str, title: str | None) -> str:
    """A page as a link."""
    place = page.removeprefix("chapters/")
    name, time = framework(page), minutes(page)
    prefix = "" if name.startswith("no") else f"{name}, "
    return (
        f'<li><a href="{place}.html">{icon(FRAMEWORKS[name][0])}'
        f"<span><b>{escape(title or heading(page))}</b> {escape(IDEAS[place])}</span>"
        f'<small style="--minutes:{time}">{prefix}{time} minutes</small></a></li>'
    )


def course_map() -> str:
    """The map as HTML: a list of parts, each a list of links."""
    key = "".join(f"<span>{icon(color)}{name}</span>" for name, (color, _) in FRAMEWORKS.items())
    rows = [
        f"<li><p>{escape(caption)}</p><ol>{''.join(stop(*page) for page in pages)}</ol></li>"
        for caption, pages in parts().items()
    ]
    return "\n".join([
        '<nav class="course-map" aria-label="Map of the course">', f"<p>{key}</p>",
        "<ol>", *rows, "</ol>", "</nav>\n",
    ])  # fmt: skip


def hours(*left_out: str) -> int:
    """Of all pages but those that a pattern matches, in whole hours."""
    pages = [page for pages in parts().values() for page, _ in pages]
    return round(sum(minutes(p) for p in pages if not re.search("|".join(left_out), p)) / 60)


if __name__ == "__main__":
    FILE.write_text(course_map(), encoding="utf-8")
    print("PyTorch:", hours("mxnet"), "hours; MXNet:", hours("pytorch"), "hours")
