"""Terms link to their definition where a page first uses them."""

import re
from copy import copy

from bs4 import NavigableString
from test_pages import EVERY_PAGE, HTML, ROOT, parsed

GLOSSARY = "chapters/reference/glossary"
NO_PROSE = "h1, h2, h3, h4, h5, h6, pre, code, .math, .cell, .training, nav, figure, p.caption"
# There a profile is what a profiler writes.
EXEMPT = {("chapters/diagnosis/profile", "profile"), ("chapters/diagnosis/traces", "profile")}
NOT_PROSE = {  # the titles there are not ours; and that text is a notebook's, or the code's, too
    GLOSSARY,
    "chapters/reference/bibliography",
    "chapters/reference/exercises",
    "chapters/reference/api",
}
ACRONYMS = {"ZeRO", "FSDP", "NCCL", "MFU", "TF32"}  # that are words in small letters


def terms():
    text = (ROOT / f"{GLOSSARY}.md").read_text()
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def uses(pieces, term):
    """Whether it is a link to the definition, for each place where a page names the term."""
    plural = "" if term.endswith("s") else "(?:s|es)?"
    words = r"\s+".join(map(re.escape, term.split()))
    pattern = rf"(?<![\w-]){words}{plural}(?![\w-])"
    flags = 0 if term in ACRONYMS else re.IGNORECASE
    for i, (text, target) in enumerate(pieces):
        yield from (target == anchor(term) for _ in re.finditer(pattern, text, flags))
        pieces[i] = (re.sub(pattern, "\0", text, flags=flags), target)


def anchor(term):
    return re.sub(r"\W+", "-", term).lower()


def definition(link):
    """The term that a link leads to, None if it leads elsewhere."""
    page, _, part = (link or {"href": ""})["href"].partition("#")
    return part if page.endswith("reference/glossary.html") or page == "glossary.html" else None


def prose(page):
    """The words of a page, [(text, the definition that they link to or None)]; no other links."""
    article = copy(parsed(HTML / f"{page}.html").select_one("article.bd-article"))
    for element in article.select(NO_PROSE):
        element.replace_with("\0")
    pieces = []
    for text in article.find_all(string=lambda string: type(string) is NavigableString):
        link = text.find_parent("a")
        target = definition(link)
        if target or not link:
            pieces.append((str(text), target))
    return pieces


@EVERY_PAGE
def test_a_key_term_links_to_its_definition_at_its_first_use(built, page):
    """A key term is used three times at least, or is no single word, which could mean much."""
    if page in NOT_PROSE:
        return
    pieces = prose(page)
    missing = {}
    for term in sorted(terms(), key=len, reverse=True):  # a longer term hides those in it
        places = list(uses(pieces, term))
        is_key = len(places) >= 3 or (places and re.search(r"\W", term))
        if is_key and not places[0] and (page, term) not in EXEMPT:
            missing[term] = len(places)
    assert missing == {}


def test_every_term_is_found_and_most_are_linked(built):
    names = terms()
    glossary = parsed(HTML / f"{GLOSSARY}.html")
    assert len(names) > 30 and all(glossary.find(id=anchor(name)) for name in names)
    linked = {
        definition(link)
        for path in (HTML / "chapters").rglob("*.html")
        for link in parsed(path).select("article a[href]")
    }
    assert len(linked - {None}) > len(names) / 2
