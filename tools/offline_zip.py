"""Writes the built pages as one zip: dist/hands-on-multi-gpu-VERSION.zip.

Whoever unpacks it opens index.html: no server, no network. The pages train there, too.
"""

import zipfile
from pathlib import Path

from d2lmgpu import __version__

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"
LEFT_OUT = {".buildinfo", "objects.inv"}  # Sphinx's own


def write(html, folder) -> Path:
    """The zip in ``folder`` of the pages ``html``, all in one folder of its name."""
    name = f"hands-on-multi-gpu-{__version__}"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(html.rglob("*")):
            if path.is_file() and path.name not in LEFT_OUT:
                archive.write(path, Path(name, path.relative_to(html)))
    return folder / f"{name}.zip"


if __name__ == "__main__":
    print(write(HTML, ROOT / "dist"))
