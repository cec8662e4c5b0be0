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
    links = parsed(HTML / f"{page}.html").select(".dropdown-launch-buttons a[href]")
    return [link["href"] for link in links]


def test_there_are_pages_with_code_and_without():
    found = [has_code(source(page)) for page in PAGES]
    assert sum(found) >= 10 and not all(found)


@EVERY_PAGE
def test_the_rocket_leads_to_this_page_on_the_hub(built, page):
    path = source(page)
    if not has_code(path):
        assert buttons(page) == []
        return
    (address,) = buttons(page)
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
