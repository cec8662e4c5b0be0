"""The rocket on each page that has code leads to that very file, on the hub of ``_config.yml``."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from test_pages import EVERY_PAGE, HTML, PAGES, ROOT, parsed

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())


def source(page):
    """The file that ``page`` was built from."""
    (path,) = [path for path in (f"{page}.ipynb", f"{page}.md") if (ROOT / path).exists()]
    return path


def has_code(path):
    return path.endswith(".ipynb") or "\nkernelspec:" in (ROOT / path).read_text()


def buttons(page):
    """The addresses under a page's rocket, in their order."""
    links = parsed(HTML / f"{page}.html").select(".dropdown-launch-buttons a[href]")
    return [link["href"] for link in links]


def test_there_are_pages_with_code_and_without():
    with_code = [has_code(source(page)) for page in PAGES]
    assert sum(with_code) >= 10 and not all(with_code)


@EVERY_PAGE
def test_the_rocket_leads_to_this_page_on_the_hub(built, page):
    path = source(page)
    if not has_code(path):
        assert buttons(page) == []
        return
    address, *free = buttons(page)
    repository, hub = CONFIG["repository"], CONFIG["launch_buttons"]["jupyterhub_url"]
    parts = urlsplit(address)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{hub}/hub/user-redirect/git-pull"
    # nbgitpuller names the learner's folder after the repository.
    folder = Path(repository["url"]).name
    assert parse_qs(parts.query) == {
        "repo": [repository["url"]],
        "branch": [repository["branch"]],
        "urlpath": [f"lab/tree/{folder}/{path}"],
    }
    assert free == []  # the address is no real one: tests/book/test_elsewhere.py has one


def test_the_exercises_page_leads_to_each_notebook_on_the_hub(built):
    page = parsed(HTML / "chapters/reference/exercises.html")
    asked = [parse_qs(urlsplit(link["href"]).query) for link in page.select("a.launch")]
    folder = Path(CONFIG["repository"]["url"]).name
    notebooks = sorted((ROOT / "exercises").glob("*.ipynb"))
    assert sorted(query["urlpath"][0] for query in asked) == [
        f"lab/tree/{folder}/exercises/{notebook.name}" for notebook in notebooks
    ]
    repository = CONFIG["repository"]
    assert all(query["repo"] == [repository["url"]] for query in asked)
    assert all(query["branch"] == [repository["branch"]] for query in asked)
    kept = [link["href"].rpartition("/")[2] for link in page.select("article a.download")]
    assert sorted(kept) == [notebook.name for notebook in notebooks]
