"""A Sphinx extension: which pages belong to a framework, and where each section's twin is.

Both are facts of chapters (chapter_facts.py). Two twins tell the same in two frameworks, and so do
their sections of the same title: each gets a link to its twin. Each page gets a table of all pages
in their order, from which assets/pages/framework.js leads along the reader's framework.
"""

from html import escape
from pathlib import Path

from chapter_facts import chapters
from docutils import nodes

from d2lmgpu.figures.site import embedded


def path(env) -> list[dict]:
    """All pages in the order of the table of contents: {"page", "title", "framework"}.

    framework is None for a page that both ways share.
    """
    pages = []

    def walk(document):
        pages.append(document.docname)
        for tree in document.subtrees:
            for name in tree.files():
                walk(env.external_site_map[name])

    walk(env.external_site_map.root)
    nobody, facts = (None, None), env.two_ways
    return [
        {"page": page, "title": own_title(env, page), "framework": facts.get(page, nobody)[0]}
        for page in dict.fromkeys(pages)
    ]


def own_title(env, page) -> str:
    """The title that the page has; its name before it has been read for the first time."""
    return env.titles[page].astext() if page in env.titles else page


def twin(env, page) -> tuple[str, str] | None:
    """The page that tells the same in the other framework, and that framework; None without one."""
    _, other = env.two_ways.get(page, (None, None))
    return other and (other, env.two_ways[other][0])


def sections(doctree) -> dict:
    """The title of each section -> the section; the page's own title, which differs, is ''."""
    by_title = {}
    for section in doctree.findall(nodes.section):
        top = isinstance(section.parent, nodes.document)
        by_title.setdefault("" if top else section[0].astext(), section)
    return by_title


def link_twins(app, doctree, page) -> None:
    """Under each title that both twins have, a link from this page's to the other's."""
    page_and_framework = twin(app.env, page)
    if page_and_framework is None or app.builder.format != "html":
        return
    other, framework = page_and_framework
    there = sections(app.env.get_doctree(other))
    address = app.builder.get_relative_uri(page, other)
    for title, section in sections(doctree).items():
        if title in there:
            part = f"#{there[title]['ids'][0]}" if title else ""
            what = "section" if title else "chapter"
            link = f'<a href="{escape(address + part)}">This {what} in {framework}</a>'
            # Raw, so that the search does not find it in every section.
            section.insert(1, nodes.raw("", f'<p class="twin">{link}</p>', format="html"))


def tell_path(app, page, template, context, doctree) -> None:
    """The table of pages, in the page: among files a script could not fetch it."""
    body = f"const CoursePages = {embedded(path(app.env))};"
    app.add_js_file(None, body=body, priority=600)


def read_facts(app, env, added, changed, removed) -> list[str]:
    """Keep {page: (framework, twin)} of the chapters; which pages are made anew for it.

    A page whose twin has changed, for the links into it, and all where one of these facts has.
    """
    before = getattr(env, "two_ways", None)
    every = chapters(Path(env.srcdir))
    env.two_ways = {
        chapter.page: (chapter.only_for, chapter.twin and every[chapter.twin].page)
        for chapter in every.values()
    }
    if before not in (None, env.two_ways):
        return list(env.found_docs)
    twins = [twin(env, page) for page in changed | added if page in env.titles]
    return [other for other, _ in filter(None, twins)]


def setup(app) -> dict[str, bool]:
    app.connect("doctree-resolved", link_twins)
    app.connect("html-page-context", tell_path)
    app.connect("env-get-outdated", read_facts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
