"""Writes the built pages as one PDF: dist/hands-on-multi-gpu-VERSION.pdf.

The articles of all pages are put one after another, in the order of the contents, and a Chromium
prints them: text, figures and formulas stay what they are, and links lead to places in the PDF.
"""

import re
import sys
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import yaml
from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader

from d2lmgpu import __version__

sys.path.insert(0, str(Path(__file__).parent))
from chromium import chromium

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
STYLE = Path(__file__).with_name("pdf.css")
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls", "headers", "list")
MINUTES = 10  # the formulas of all pages are set at once: longer is a hang
NUMBER = (
    '<div style="width: 100%; text-align: center; font: 8pt sans-serif">'
    '<span class="pageNumber"></span></div>'
)


def contents(root) -> list:
    """[(caption of a part or "", [page, …]), …], pages as 'chapters/intro'."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [
        (part["caption"], [page["file"] for page in part["chapters"]]) for part in toc["parts"]
    ]
    return [("", [toc["root"]]), *parts]


def article(html, page, pages) -> Tag:
    """The article of a page, its ids made its own and its links leading into the whole."""
    soup = BeautifulSoup((html / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    whole = soup.select_one("article.bd-article")
    for useless in whole.select(
        ".headerlink, script[type='application/vnd.jupyter.widget-state+json']"
    ):
        useless.decompose()
    for element in whole.select("[id]"):
        element["id"] = f"{page}:{element['id']}"
    for element in whole.find_all(True):
        for name in REFERENCES:
            if name in element.attrs:
                ids = element[name].split() if isinstance(element[name], str) else element[name]
                element[name] = " ".join(f"{page}:{identifier}" for identifier in ids)
        for name in ("src", "href"):
            if name in element.attrs:
                element[name] = address(element[name], page, pages)
        for name, value in element.attrs.items():  # within drawings: fill="url(#hatched)"
            if isinstance(value, str) and "url(#" in value:
                element[name] = value.replace("url(#", f"url(#{page}:")
    whole["id"] = page
    return whole


def address(link, page, pages) -> str:
    """Where a link of a page leads in the whole: a place in it, a file of the pages, or outside."""
    if re.match(r"[a-z]+:", link):
        return link
    target, place = urldefrag(urljoin(f"{page}.html", link))
    name = target.removesuffix(".html")
    if name not in pages:
        return f"../html/{urljoin(f'{page}.html', link)}"
    return f"#{name}:{place}" if place else f"#{name}"


def whole(html, parts) -> BeautifulSoup:
    """All pages as one: the first page's head, the contents, the articles."""
    pages = [page for _, named in parts for page in named]
    soup = BeautifulSoup((html / f"{pages[0]}.html").read_text(encoding="utf-8"), "html.parser")
    for element in soup.head.select("[src], [href]"):
        name = "src" if "src" in element.attrs else "href"
        element[name] = address(element[name], pages[0], ())
    soup.html["data-content_root"], soup.html["data-theme"] = "../html/", "light"
    articles = {page: article(html, page, pages) for page in pages}
    body = BeautifulSoup(
        "<body class='pdf'><nav><h1>Contents</h1><ol></ol></nav></body>", "html.parser"
    )
    for caption, named in parts:
        if caption:
            body.ol.append(BeautifulSoup(f"<li class='part'>{caption}</li>", "html.parser"))
        for page in named:
            title = articles[page].h1.get_text(strip=True)
            entry = f"<li><a href='#{page}'>{title}</a><span data-page='{page}'></span></li>"
            body.ol.append(BeautifulSoup(entry, "html.parser"))
    first, *others = articles.values()
    body.nav.insert_before(first)
    body.body.extend(others)
    soup.body.replace_with(body.body)
    soup.head.append(
        BeautifulSoup(f"<style>{STYLE.read_text(encoding='utf-8')}</style>", "html.parser")
    )
    return soup


def print_pages(browser, source, target, pages) -> None:
    """Print a file twice: the first time tells on which page of the PDF each article starts."""
    page = browser.new_page()
    page.set_default_timeout(MINUTES * 60_000)
    page.goto(source.as_uri(), wait_until="load")
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.wait_for_load_state("networkidle")
    options = {"format": "A4", "print_background": True, "outline": True, "tagged": True}
    options |= {
        "display_header_footer": True,
        "header_template": "<i></i>",
        "footer_template": NUMBER,
    }
    options["margin"] = {"top": "18mm", "bottom": "18mm", "left": "18mm", "right": "18mm"}
    for _ in range(2):
        page.pdf(path=target, **options)
        numbers = starts(target, pages)
        page.evaluate(
            "(numbers) => document.querySelectorAll('[data-page]').forEach("
            "(span) => { span.textContent = numbers[span.dataset.page]; })",
            numbers,
        )
    page.close()


def starts(target, pages) -> dict:
    """{page: number of the page of the PDF on which it starts, from 1}."""
    reader = PdfReader(target)
    places = reader.named_destinations
    return {
        page: reader.get_destination_page_number(
            places[f"/{page}" if f"/{page}" in places else page]
        )
        + 1
        for page in pages
    }


def write(html, root, folder) -> Path:
    """The PDF in ``folder`` of the pages ``html``."""
    parts = contents(root)
    source = html.parent / "pdf" / "index.html"
    source.parent.mkdir(exist_ok=True)
    source.write_text(str(whole(html, parts)), encoding="utf-8")
    folder.mkdir(exist_ok=True)
    target = folder / f"hands-on-multi-gpu-{__version__}.pdf"
    with chromium() as browser:
        print_pages(browser, source, target, [page for _, named in parts for page in named])
    return target


if __name__ == "__main__":
    print(write(HTML, ROOT, ROOT / "dist"))
