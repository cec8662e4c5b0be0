"""A Sphinx extension: what a page shows in a notebook, and what the built page has in its place.

    <div data-drawn="cover.svg">

    ![A batch is split over four devices.](cover.svg)

    </div>

In JupyterLab this is a picture or a list in plain Markdown. In the built page the file, whose path
is relative to the page, stands there instead: SVG in the page's own ink, or HTML in its styles.

Styles within pictures go to the head of the page: the script that marks the words of a search takes
them for text, breaks them and stops.
"""

import re
from pathlib import Path

from docutils import nodes

STYLE = re.compile(r"<style[^>]*>[^<]*</style>")
OPENING = re.compile(r'<div data-drawn="([^"]+)">')


def put_files(app, doctree) -> None:
    """The file of each such element in its place."""
    for start in list(doctree.findall(nodes.raw)):
        match = OPENING.fullmatch(start.astext().strip())
        if not match:
            continue
        file = Path(app.env.doc2path(app.env.docname)).parent / match[1]
        app.env.note_dependency(str(file))
        within = start.parent
        at = within.index(start)
        while within.pop(at).astext().strip() != "</div>":
            pass
        within.insert(at, nodes.raw("", file.read_text(encoding="utf-8"), format="html"))


def lift_styles(app, page, template, context, doctree) -> None:
    """Each style of the page's pictures once, in its head."""
    body = context.get("body", "")
    styles = "".join(dict.fromkeys(STYLE.findall(body)))
    context["metatags"] = context.get("metatags", "") + styles
    context["body"] = STYLE.sub("", body)


def setup(app) -> dict[str, bool]:
    app.connect("doctree-read", put_files, priority=100)  # before anybody looks for pictures
    app.connect("html-page-context", lift_styles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
