"""The PDF: text and drawings as such, nothing cut off, and links that lead where they say."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from programs import program
from pypdf import PdfReader
from test_pages import HTML, TOC, parsed

pytestmark = pytest.mark.soak

LAB = "chapters/lab/gluon-mnist"
PAGES = [
    TOC["root"],
    "chapters/foundations/data-parallelism",
    "chapters/scaling/overlap",
    "chapters/scaling/allreduce",
    LAB,
    "chapters/reference/bibliography",
]


@pytest.fixture(scope="module")
def pdf(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pdf")
    (folder / "home").mkdir()
    first, *others = ({"file": page} for page in PAGES)
    toc = {"root": first["file"], "parts": [{"caption": "All", "chapters": others}]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as thread:
        patch.setenv("HOME", str(folder / "home"))
        # in another thread: this one has Playwright's loop of other tests
        written = thread.submit(program("pdf").write, built, folder, folder / "dist").result()
    assert not [*(folder / "home").iterdir()], "written to the home folder"
    return PdfReader(written)


@pytest.fixture(scope="module")
def texts(pdf):
    """The text of each page without its number, and without white space: lines break anywhere."""
    texts = []
    for number, page in enumerate(pdf.pages, 1):
        text = plain(page.extract_text())
        assert text.endswith(str(number)), "a page without its number"
        texts.append(text.removesuffix(str(number)))
    return texts


def plain(text):
    return re.sub(r"\s", "", text)


def title(page):
    heading = parsed(HTML / f"{page}.html").select_one("article h1")
    return plain(heading.get_text().removesuffix("#"))


def links(pdf):
    """(number of the page that it is on, number of the page where it leads), both from 0."""
    places = pdf.named_destinations
    for number, page in enumerate(pdf.pages):
        for annotation in page.get("/Annots", []):
            target = annotation.get_object().get("/Dest")
            if target is not None:
                yield number, pdf.get_destination_page_number(places[target])


def test_the_contents_name_the_pages_where_articles_start(pdf, texts):
    (contents,) = [i for i, text in enumerate(texts) if text.startswith("Contents")]
    entries = texts[contents].removeprefix("Contents").replace("All", "", 1)
    numbers = re.fullmatch(r"(\d+)".join([*map(re.escape, map(title, PAGES)), ""]), entries)
    led = {to for on, to in links(pdf) if on == contents}
    assert led == {int(number) - 1 for number in numbers.groups()}
    for page, number in zip(PAGES, numbers.groups()):
        assert title(page) in texts[int(number) - 1]


def test_a_citation_leads_to_its_entry(pdf, texts):
    start = max(to for on, to in links(pdf) if texts[on].startswith("Contents"))
    cited = len(parsed(HTML / f"{PAGES[1]}.html").select("article a[href*='bibliography']"))
    assert cited and sum(on < start <= to for on, to in links(pdf)) > cited


def test_figures_are_drawings(pdf):
    assert parsed(HTML / f"{PAGES[2]}.html").select("article svg, article img[src$='.svg']")
    assert [image.name for page in pdf.pages for image in page.images] == []


def test_the_charts_of_a_lab_name_what_they_draw(texts):
    records = parsed(HTML / f"{LAB}.html").select_one(".lab-recorded script").text
    names = [run["name"] for run in json.loads(records)[0]["runs"]]
    printed = "".join(texts)
    assert len(names) > 2 and [name for name in names if plain(name) not in printed] == []
    assert plain("times as fast") in printed


def test_no_line_of_code_is_cut(texts):
    whole = "".join(texts)
    lines = [
        plain(line)
        for page in PAGES
        for block in parsed(HTML / f"{page}.html").select("article .cell pre")
        for line in block.get_text().splitlines()
    ]
    assert len(lines) > 100 and [line for line in lines if line not in whole] == []
