"""A page with the training panel, with the theme's styles, as the book has it; and its reader."""

import shutil
import time
from pathlib import Path

import pydata_sphinx_theme
import sphinx_book_theme
from servers import SECONDS

from d2lmgpu.lab import scripts

ASSETS = Path(__file__).resolve().parents[2] / "assets"
THEMES = [
    Path(package.__file__).parent / "theme" / package.__name__ / "static" / "styles"
    for package in (pydata_sphinx_theme, sphinx_book_theme)
]
STYLES = ["bootstrap.css", "pydata-sphinx-theme.css", "sphinx-book-theme.css"]
LINKS = "".join(
    f'<link rel="stylesheet" href="_static/{style}">' for style in [*STYLES, "course.css"]
)

# An engine that does not train but tells a story: what the real one cannot be made to show.
FAKE = """
class Training {
  static networks = { lenet: { name: "LeNet", parameters: 44426, defaultLr: 0.2 } };
  static cores = 2;
  static async load() {}
  static start(settings, listen) {
    const { how, message, hidden, seconds, losses, ends } = {
      how: "finished", hidden: false, seconds: 1, losses: [1, 0.5], ...story(settings),
    };
    const done = (async () => {
      await null;
      listen({ type: "start", devices: settings.devices, cores: 2, simd: true, steps: 2 });
      for (const step of losses.map((_, at) => at + 1)) {
        listen({
          type: "step", step, epoch: 1, loss: losses[step - 1], correct: 0.5,
          seconds: ends?.[step - 1] ?? seconds * step, samples: 256 * step, samplesPerSecond: 1,
          exchangeShare: 0.1, bytes: 1000 * step,
        });
      }
      const testAccuracy = losses.at(-1) > 1 ? 0.1 : 0.5;
      listen({ type: "epoch", epoch: 1, testAccuracy, samplesPerSecond: 1, hidden });
      listen({ type: "end", how, message, losses });
      return { how, message };
    })();
    return { done, stop() {} };
  }
}
"""


def write_theme(static):
    """The theme's styles and the libraries of the pages, in a new folder ``static``."""
    static.mkdir()
    for name in ("vendor", "pages", "course.css"):
        (static / name).symlink_to(ASSETS / name)
    for style in STYLES:
        (theme,) = [styles / style for styles in THEMES if (styles / style).exists()]
        (static / style).symlink_to(theme)


def write_site(folder, images, engine=None):
    """What pages with the panel need beside them, ``engine`` in place of the real one."""
    static = folder / "_static"
    write_theme(static)
    shutil.copytree(ASSETS / "training", static / "training")
    for name in ("words.js", "chart.js", "svg.js", "lab.css"):  # of the lab, for the curves
        (static / name).symlink_to(scripts.FOLDER / name)
    shutil.copy(images, static / "training")
    if engine:
        (static / "training" / "training.js").write_text(engine)


def write_page(folder, name="page", theme="light", **data):
    """Writes ``name.html`` with a panel whose settings are ``data``."""
    settings = "".join(f' data-{key.replace("_", "-")}="{value}"' for key, value in data.items())
    (folder / f"{name}.html").write_text(
        f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>A page that trains</title>'
        f'<link rel="icon" href="data:,">{LINKS}<link rel="stylesheet" href="_static/lab.css">'
        '<script src="_static/pages/loader.js"></script>'
        f'<body><article class="bd-article"><div class="training"{settings}>'
        "In the built pages, your browser trains here.</div></article>"
    )


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def wait_for(page, words):
    page.locator(".training-said", has_text=words).wait_for()


def rows(page):
    table_rows = page.locator(".training tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in table_rows]


def wait_until_none_works(page):
    """Until no worker is left; Playwright hears of an end while it talks with the page."""
    deadline = time.monotonic() + SECONDS
    while page.workers:
        assert time.monotonic() < deadline, f"{len(page.workers)} workers are left"
        page.evaluate("0")
