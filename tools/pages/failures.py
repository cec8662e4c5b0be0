"""A Sphinx extension: the page of a chapter that failed says so at its head, and with what."""

import html
import json
from pathlib import Path


def failures(app) -> dict:
    """{page: [what it said, its log]}, as tools/book.py wrote them down."""
    file = Path(app.outdir).with_name("failed.json")
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def tell_the_table(app, env) -> None:
    """The table of all pages says what is kept of a failed chapter is no success."""
    for page in failures(app):
        env.nb_metadata[page]["exec_data"]["succeeded"] = False


def tell_the_page(app, page, template, context, doctree) -> None:
    if page in (failed := failures(app)):
        line, log = map(html.escape, failed[page])
        context["body"] = (
            '<div class="admonition danger"><p class="admonition-title">This chapter failed</p>'
            f"<p>It was run up to this line: <code>{line}</code></p><p>What it said is in {log}; "
            "<code>make book</code> runs it again.</p></div>" + context["body"]
        )


def setup(app) -> dict[str, bool]:
    app.connect("env-updated", tell_the_table)
    app.connect("html-page-context", tell_the_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
