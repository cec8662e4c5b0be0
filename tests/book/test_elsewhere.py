"""An edition of one's own: two addresses changed, and everything leads there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml
from bs4 import BeautifulSoup
from tracked import tracked

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY, HUB = "https://github.com/ada/other-course", "https://hub.ada.example"
PAGES = ["chapters/scratch/pytorch", "chapters/scratch/mxnet", "chapters/reference/elsewhere"]


def addresses():
    """The two that _config.yml has."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    return config["repository"]["url"], config["launch_buttons"]["jupyterhub_url"]


def build(folder, repository, hub, pages):
    """Pages of the course with other addresses; their chapters are not run."""
    for path in tracked():
        if "tests" not in path.relative_to(ROOT).parts:
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    config = (folder / "_config.yml").read_text()
    for old, new in zip(addresses(), (repository, hub)):
        assert config.count(f'"{old}"') == 1
        config = config.replace(f'"{old}"', f'"{new}"')
    config = config.replace("execute_notebooks: cache", 'execute_notebooks: "off"')
    (folder / "_config.yml").write_text(config)
    toc = {"format": "jb-book", "root": pages[0], "chapters": [{"file": p} for p in pages[1:]]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    subprocess.run([sys.executable, "tools/first_cells.py"], cwd=folder, check=True)
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-q", "."]
    environ = os.environ | {"D2LMGPU_BOOK": "1"}
    subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
    return folder / "_build" / "html"


def buttons(html, page):
    """{button: address} of the menu under a page's rocket."""
    soup = BeautifulSoup((html / f"{page}.html").read_text(), "html.parser")
    links = soup.select(".dropdown-launch-buttons a[href]")
    return {link.get_text(strip=True): link["href"] for link in links}


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    return build(tmp_path_factory.mktemp("edition"), REPOSITORY, HUB, PAGES)


def test_rocket_and_buttons_of_a_pytorch_page_lead_to_the_new_addresses(edition):
    page = "chapters/scratch/pytorch"
    addresses = buttons(edition, page)
    assert list(addresses) == ["JupyterHub", "Kaggle", "Colab", "No GPU?"]
    rocket, _, query = addresses["JupyterHub"].partition("?")
    assert rocket == f"{HUB}/hub/user-redirect/git-pull"
    assert parse_qs(query)["repo"] == [REPOSITORY]
    file = f"/ada/other-course/blob/main/{page}.ipynb"
    assert addresses["Kaggle"] == f"https://kaggle.com/kernels/welcome?src=https://github.com{file}"
    assert addresses["Colab"] == f"https://colab.research.google.com/github{file}"
    what_to_choose, _, section = addresses["No GPU?"].partition("#")
    target = (edition / page).parent / what_to_choose
    assert BeautifulSoup(target.read_text(), "html.parser").find(id=section)


def test_an_mxnet_page_has_the_rocket_alone(edition):
    assert list(buttons(edition, "chapters/scratch/mxnet")) == ["JupyterHub"]


def test_the_first_cell_installs_from_the_new_repository_and_is_folded(edition):
    (path,) = edition.parents[1].glob("chapters/scratch/pytorch.ipynb")
    cells = json.loads(path.read_text())["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert f'"git+{REPOSITORY}@main"' in "".join(first["source"])
    assert first["metadata"]["jupyter"] == {"source_hidden": True}


def test_without_an_address_nothing_leads_to_one():
    owner = addresses()[0].rpartition("/")[0]
    assert not [path for path in ROOT.glob("chapters/**/*.ipynb") if owner in path.read_text()]


def test_a_repository_elsewhere_and_no_hub_leave_no_button(tmp_path):
    pages = PAGES[:2]
    html = build(tmp_path, "https://git.ada.example/other-course", "", pages)
    assert all(buttons(html, page) == {} for page in pages)


def test_each_address_stands_in_one_place(edition):
    """But for the first cells, which are written from it."""
    repository, _ = addresses()
    owner = repository.rpartition("/")[0]
    places = {path for path in tracked() if owner.encode() in path.read_bytes()}
    assert places == {ROOT / "_config.yml"}
    left = edition.parents[1]
    assert not [p for p in left.glob("chapters/**/*.ipynb") if owner in p.read_text()]
