"""Every notebook as a reader opens it shows no markup that only the book understands."""

import re
import shutil

import pytest
from nbconvert import HTMLExporter
from pages import open_notebook
from servers import ROOT, jupyterlab, notebook7
from soaking import sample

NOTEBOOKS = [
    path.relative_to(ROOT).as_posix()
    for folder in ("chapters/*", "exercises")
    for path in sorted(ROOT.glob(f"{folder}/*.ipynb"))
]
# As these are rendered: a role is {name} before code, a directive begins with colons.
MARKUP = re.compile(r"\{[\w:-]+\}<code|:::|```|^\(.+\)=$|data-built", re.M)
SHOWN = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    return cells.filter(cell => cell.model.type === 'markdown')
        .map(cell => cell.node.querySelector('.jp-RenderedMarkdown')?.innerHTML ?? '');
}"""


def marks(html):
    return MARKUP.findall(re.sub(r"<pre.*?</pre>", "", html, flags=re.S))


@pytest.fixture
def opened(tmp_path, page):
    """The rendered Markdown cells of a notebook in one of the two front ends."""

    def opened(front_end, at, name):
        with front_end(tmp_path) as server:
            for folder in ("chapters", "exercises"):
                shutil.copytree(ROOT / folder, server.notebooks / folder)
            open_notebook(page, server, at, name)
            page.wait_for_function(f"({SHOWN})().every(Boolean)")
            return page.evaluate(f"({SHOWN})()")

    return opened


@pytest.mark.parametrize("name", sample(["chapters/scratch/pytorch.ipynb"], NOTEBOOKS))
def test_in_jupyterlab(opened, name):
    cells = opened(jupyterlab, "lab/tree", name)
    assert len(cells) > 3 and [marks(cell) for cell in cells if marks(cell)] == []


@pytest.mark.parametrize("name", sample(0, NOTEBOOKS))
def test_in_notebook_7(opened, name):
    cells = opened(notebook7, "notebooks", name)
    assert len(cells) > 3 and [marks(cell) for cell in cells if marks(cell)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_as_html(name):
    page, _ = HTMLExporter(template_name="classic").from_filename(str(ROOT / name))
    body = page[page.index("<body") :]
    assert marks(re.sub(r"<script.*?</script>", "", body, flags=re.S)) == []
