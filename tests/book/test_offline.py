"""The pages as one zip: unpacked elsewhere and opened from the disk, with the network cut."""

import zipfile

import pytest
from programs import program


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    with zipfile.ZipFile(program("offline_zip").write(built, folder / "dist")) as archive:
        archive.extractall(folder)
    (course,) = folder.glob("hands-on-multi-gpu-*")
    return course


@pytest.fixture
def cut(browser, unpacked):
    """A page of a browser that may open the unpacked files and nothing else."""
    with browser.new_context(offline=True) as context:
        elsewhere = []
        context.on("request", lambda request: elsewhere.append(request.url))
        yield context.new_page()
    own = (unpacked.as_uri(), "data:", "blob:")
    assert [url for url in elsewhere if not url.startswith(own)] == []


def test_it_holds_all_pages_and_what_they_use(built, unpacked):
    pages, copies = (
        {path.relative_to(top) for path in top.rglob("*")} for top in (built, unpacked)
    )
    assert {path.as_posix() for path in pages - copies} <= {".buildinfo", "objects.inv"}
    assert copies <= pages


def test_the_first_page_leads_to_a_chapter(cut, unpacked):
    cut.goto((unpacked / "index.html").as_uri())
    cut.wait_for_url("**/chapters/intro.html")
    cut.locator("article a[href*='foundations/data-parallelism']").first.click()
    cut.wait_for_url("**/data-parallelism.html")
    cut.wait_for_function("MathJax.startup.promise.then(() => true)")
    assert cut.locator("mjx-container").count() > 10


def test_a_page_trains(cut, unpacked):
    cut.goto((unpacked / "chapters" / "intro.html").as_uri())
    cut.locator(".training[data-ready]").wait_for()
    cut.get_by_role("button", name="One device, then two", exact=True).click()
    cut.locator(".race-more > summary").click()
    cut.locator(".training-loss canvas").wait_for()
    cut.get_by_role("button", name="Stop", exact=True).click()
    cut.locator(".training-said", has_text="Stopped after").wait_for()
