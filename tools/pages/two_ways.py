"""A Sphinx extension: which pages belong to a framework, and where each section's twin is.

A page belongs to the framework that its title in the side bar names. Two pages of one folder that
belong to one framework each are twins, and so are their sections of the same title. Each section
gets a link to its twin, and each page a table of all pages in their order, from which
assets/pages/framework.js leads along the reader's framework.
"""

from html import escape

from docutils import nodes

from d2lmgpu.figures.site import embedded

FRAMEWORKS = ("PyTorch", "MXNet")


def path(env) -> list[dict]:
    """All pages in the order of the table of contents: {"page", "title", "framework"}.

    framework is None for a page that both ways share.
    """
    pages_in_order = []

    def walk(document):
        pages[document.docname] = document.title or own_title(env, document.docname)
        for tree in document.subtrees:
            for name in tree.files():
                walk(env.external_site_map[name])

    pages = {}
    walk(env.external_site_map.root)
    for page, short in pages.items():
        named = [framework for framework in FRAMEWORKS if framework in short]
        framework = named[0] if len(named) == 1 else None
        title = own_title(env, page)
        pages_in_order.append({"page": page, "title": title, "framework": framework})
    return pages_in_order


def own_title(env, page) -> str:
    """The title that the page has; its name before it has been read for the first time."""
    return env.titles[page].astext() if page in env.titles else page


def twin(env, page) -> tuple[str, str] | None:
    """The page that tells the same in the other framework, and that framework; None without one."""
    folder = page.rpartition("/")[0]
    framework_of = {at["page"]: at["framework"] for at in path(env) if at["framework"]}
    siblings = [other for other in framework_of if other.rpartition("/")[0] == folder]
    frameworks = sorted(framework_of[other] for other in siblings)
    if page not in framework_of or frameworks != sorted(FRAMEWORKS):
        return None
    (other,) = [other for other in siblings if other != page]
    return other, framework_of[other]


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


def read_twins_too(app, env, added, changed, removed) -> list[str]:
    """A page whose twin has changed is made anew, for the links into it."""
    twins = [twin(env, page) for page in changed | added if page in env.titles]
    return [other for other, _ in filter(None, twins)]


def setup(app):
    app.connect("doctree-resolved", link_twins)
    app.connect("html-page-context", tell_path)
    app.connect("env-get-outdated", read_twins_too)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
