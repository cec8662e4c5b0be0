"""A Sphinx extension: a link to a source of ``references.bib`` is a citation in the book.

    a ring ([Patarasuk and Yuan, 2009](https://doi.org/10.1016/j.jpdc.2008.09.002))

So a notebook leads to the paper wherever it is opened, for only the book knows roles; in the book
the same words lead to the bibliography. ``words`` says which they are. Several sources stand in one
pair of brackets with semicolons between them; where the year is in brackets of its own, as in
``[He et al. (2015)](…)``, the words are part of a sentence.
"""

import re
from functools import cache
from pathlib import Path

import nbformat
from pybtex.database import parse_file

LINK = r"\[(?P<words>[^][]+)\]\((?P<address>https?://[^\s)]+)\)"
CITATION = re.sub(r"\?P<\w+>", "", LINK)
SEVERAL = re.compile(rf"(?P<opening>\()?{CITATION}(?:;\s+{CITATION})*(?(opening)\))")


@cache
def sources(root: Path) -> dict:
    """{address: (key, how a citation names it)} of all in ``references.bib``."""
    known = {}
    for key, entry in parse_file(root / "references.bib", "bibtex").entries.items():
        fields = entry.fields
        address = fields["url"] if "url" in fields else f"https://doi.org/{fields['doi']}"
        known[address] = key, words(entry)
    return known


def words(entry) -> str:
    """The names of a source's authors, and its year if it has one."""
    names = [
        re.sub(r"[{}]", "", " ".join(person.prelast_names + person.last_names))
        for person in entry.persons["author"]
    ]
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{authors}, {entry.fields['year']}" if "year" in entry.fields else authors


def cite(text: str, root: Path) -> str:
    """Markdown with a role in place of each link, or pair of brackets, that is a citation."""

    def role(match):
        links = list(re.finditer(LINK, match[0]))
        if not all(link["address"] in sources(root) for link in links):
            return match[0]
        keys = ",".join(sources(root)[link["address"]][0] for link in links)
        return f"{{cite{':t' * links[0]['words'].endswith(')')}}}`{keys}`"

    return SEVERAL.sub(role, text)


def cite_page(app, page, source) -> None:
    """The citations of a page, or of a notebook's text, before it is parsed."""
    root = Path(app.confdir)
    if Path(app.env.doc2path(page)).suffix != ".ipynb":
        source[0] = cite(source[0], root)
        return
    notebook = nbformat.reads(source[0], as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cite(cell.source, root)
    source[0] = nbformat.writes(notebook)


def setup(app) -> dict[str, bool]:
    app.connect("source-read", cite_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
