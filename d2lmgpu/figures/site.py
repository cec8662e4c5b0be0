"""Styles and scripts, which are files beside their modules: where the reader gets them from.

The built book loads each of them once (see _config.yml). Elsewhere, in a notebook, they come with
the output that needs them.
"""

import json
import os
import re
from functools import cache
from pathlib import Path

from d2lmgpu.machine.files import PACKAGE

BOOK = "D2LMGPU_BOOK"  # set while the book is built


def inlined(*names: str) -> str:
    """The files as HTML elements, empty while the book is built; ``names`` as 'figures/x.css'."""
    return "" if os.environ.get(BOOK) else "".join(map(_element, names))


@cache
def _element(name):
    tag = {".css": "style", ".js": "script"}[Path(name).suffix]
    return f"<{tag}>{joined(name)}</{tag}>"


@cache
def joined(*names: str) -> str:
    """The files as one text."""
    return "\n".join((PACKAGE / name).read_text(encoding="utf-8") for name in names)


def embedded(data) -> str:
    """``data`` as JSON for a script element, which no text in it can end, or keep from ending.

    Raises ValueError for NaN and infinity, which the browser's JSON has not.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return re.sub("<(?=!--|script)", r"\\u003c", text, flags=re.IGNORECASE)


def widget(drawn: str, *names: str) -> str:
    """Scripts as the ES module of a widget: the class ``drawn`` of theirs shows it, and can end."""
    render = f"""
export default {{
  render({{ model, el }}) {{
    const lab = new {drawn}(el, model);
    return () => lab.end();
  }},
}};
"""
    return f"{joined(*names)}\n{render}"
