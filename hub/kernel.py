"""The kernel ``python3`` of a GPU machine: the environment of the notebook's own framework.

There the frameworks have an environment each, since their CUDA libraries overwrite each other's
(requirements-gpu.txt). Every chapter asks for the kernel ``python3``; this file is that kernel,
reads which framework the notebook imports, and becomes that environment's Python.

    python hub/kernel.py install MXNET_PYTHON TORCH_PYTHON   # into the environment of this Python
"""

import json
import os
import re
import sys
from pathlib import Path

# Only where a line begins: not in a comment.
IMPORT = re.compile(r"(?m)^\s*(?:import|from|from\s+d2lmgpu\s+import)\s+(mxnet|torch)\b")


def framework(notebook: str) -> str:
    """The one that the code of a notebook file imports first; ``torch`` if it imports none."""
    try:
        cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError):
        return "torch"  # a console, a notebook that was never saved, or a file that is no notebook
    first_import = IMPORT.search(code)
    return first_import[1] if first_import else "torch"


def install(mxnet_python: str, torch_python: str, prefix: str = sys.prefix) -> Path:
    """Write the kernel ``python3`` into ``prefix``; returns its folder."""
    folder = Path(prefix) / "share/jupyter/kernels/python3"
    folder.mkdir(parents=True, exist_ok=True)
    pythons = {"mxnet": mxnet_python, "torch": torch_python}
    spec = {
        "argv": [sys.executable, str(Path(__file__).resolve()), "-f", "{connection_file}"],
        "display_name": "Python 3 (the notebook's framework)",
        "language": "python",
        "env": {f"D2LMGPU_PYTHON_{name.upper()}": python for name, python in pythons.items()},
    }
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
    return folder


def main() -> None:
    if sys.argv[1:2] == ["install"]:
        print(install(*sys.argv[2:]))
        return
    name = framework(os.environ.get("JPY_SESSION_NAME", ""))
    python = os.environ[f"D2LMGPU_PYTHON_{name.upper()}"]
    os.execv(python, [python, "-m", "ipykernel_launcher", *sys.argv[1:]])


if __name__ == "__main__":
    main()
