"""A Sphinx extension: links to the exercises' notebooks, which are no pages of the book.

In JupyterLab a link to ``../../exercises/scaling.ipynb#12.-Title`` opens the notebook. In the book
it leads to the same question on the page of the exercises. There the role ``launch`` makes a link
that opens a notebook on the hub; without a hub it makes nothing.
"""

from pathlib import PurePosixPath
from urllib.parse import urlencode

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxRole

NOTEBOOKS = "exercises/"


def lead_to_the_page(app, doctree) -> None:
    """Turn links to a notebook, or to a heading in it, into links to the page's label."""
    for link in doctree.findall(addnodes.pending_xref):
        target = link.get("reftarget") or ""
        if link.get("refdomain") == "doc" and target.startswith(NOTEBOOKS):
            heading = nodes.make_id(link.get("reftargetid") or "")
            part = target.removeprefix(NOTEBOOKS)
            label = f"exercise-{heading}" if heading else f"exercises-{part}"
            link["refdomain"], link["reftype"], link["reftarget"] = "std", "ref", label


class Launch(SphinxRole):
    """``{launch}`exercises/scaling.ipynb```: the notebook, on the hub of ``_config.yml``."""

    def run(self) -> tuple[list, list]:
        options = self.config.html_theme_options
        hub = options.get("launch_buttons", {}).get("jupyterhub_url", "").strip("/")
        if not hub:
            return [], []
        repository = options["repository_url"]
        path = f"lab/tree/{PurePosixPath(repository).name}/{self.text}"
        asked = {"repo": repository, "urlpath": path, "branch": options["repository_branch"]}
        address = f"{hub}/hub/user-redirect/git-pull?{urlencode(asked, safe='/')}"
        link = nodes.reference("", "open it on the hub", refuri=address, classes=["launch"])
        return [nodes.Text(", or "), link], []


def setup(app) -> dict[str, bool]:
    app.add_role("launch", Launch())
    app.connect("doctree-read", lead_to_the_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
