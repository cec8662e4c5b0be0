"""Styles and scripts, which are files beside their modules: where the reader gets them from.

The built book loads each of them once (see _config.yml). Elsewhere, in a notebook, they come with
the output that needs them.
"""

import os
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
    return f"<{tag}>{(PACKAGE / name).read_text()}</{tag}>"
