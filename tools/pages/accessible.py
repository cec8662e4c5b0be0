"""A Sphinx extension: HTML of MyST-NB and docutils that misleads a reader, mended."""

MENDED = {
    # What folds a cell is named by what is read on it.
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # A list's children are list items; docutils makes other ones, with link targets between them.
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    # A sign that many machines have no letter for.
    "<p>✅</p>": "<p>finished</p>",
    # What may scroll can be scrolled with the keyboard.
    '<div class="pst-scrollable-table-container">': (
        '<div class="pst-scrollable-table-container" tabindex="0" role="group" aria-label="Table">'
    ),
}


def mend(app, page, template, context, doctree) -> None:
    for faulty, sound in MENDED.items():
        context["body"] = context.get("body", "").replace(faulty, sound)


def setup(app) -> dict[str, bool]:
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
