"""For Sphinx: buttons for Kaggle and Colab, on the pages whose first cell brings the course there.

Both open a notebook of a repository on GitHub: for another one there are no such buttons. Below
them a link leads to what to choose there.
"""

import json
from pathlib import Path
from urllib.parse import urlsplit

TAG = "hosted"  # of that cell, see first_cells.py
COLAB = "https://colab.research.google.com/github"
KAGGLE = "https://kaggle.com/kernels/welcome?src=https://github.com"
HELP = "chapters/reference/elsewhere"  # its section "Free GPUs"


def is_hosted(path) -> bool:
    """Whether this is a notebook with such a first cell."""
    if path.suffix != ".ipynb":
        return False
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return any(
        cell["cell_type"] == "code" and TAG in cell["metadata"].get("tags", []) for cell in cells
    )


def add_buttons(app, pagename, templatename, context, doctree) -> None:
    """The two links, in the theme's menu under the rocket."""
    options = app.config.html_theme_options
    repository = urlsplit(options["repository_url"])
    if not doctree or repository.netloc != "github.com":
        return
    if not is_hosted(Path(app.env.doc2path(pagename))):
        return
    file = f"{repository.path}/blob/{options['repository_branch']}/{pagename}.ipynb"
    menu = next(
        (group for group in context["header_buttons"] if group.get("label") == "launch-buttons"),
        None,
    )
    if menu is None:  # no hub
        menu = {
            "type": "group",
            "tooltip": "Run this page",
            "icon": "fas fa-rocket",
            "buttons": [],
            "label": "launch-buttons",
        }
        context["header_buttons"].append(menu)
    for host, url, icon in (
        ("Kaggle", KAGGLE + file, "fab fa-kaggle"),
        ("Colab", COLAB + file, "_static/images/logo_colab.png"),
    ):
        tooltip = f"Open on {host}"
        menu["buttons"].append(
            {"type": "link", "text": host, "tooltip": tooltip, "icon": icon, "url": url}
        )
    if HELP in app.env.found_docs:
        url = f"{context['pathto'](HELP)}#free-gpus"
        tooltip, icon = "Free GPUs there, and what to choose", "fas fa-circle-question"
        menu["buttons"].append(
            {"type": "link", "text": "No GPU?", "tooltip": tooltip, "icon": icon, "url": url}
        )


def setup(app) -> dict[str, bool]:
    app.connect("html-page-context", add_buttons, priority=502)  # after the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
