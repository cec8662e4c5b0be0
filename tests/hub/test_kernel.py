"""The kernel of a GPU machine takes the environment of the notebook's framework."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel import framework, install

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").rglob("*.ipynb"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_chapters_get_the_framework_in_their_name(chapter):
    expected = "mxnet" if "mxnet" in chapter.name or "gluon" in chapter.name else "torch"
    assert framework(str(chapter)) == expected


def notebook(folder, kind, source):
    path = folder / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": kind, "source": [source]}]}))
    return str(path)


@pytest.mark.parametrize(
    "kind, source, expected",
    [
        ("code", "from d2lmgpu import mxnet as d2l", "mxnet"),
        ("code", "import mxnet as mx", "mxnet"),
        ("code", "from mxnet.gluon import nn", "mxnet"),
        ("code", "import torch", "torch"),
        ("markdown", "import mxnet as mx", "torch"),
        ("code", "import mxnetlike", "torch"),
        ("code", "import torch\nprogram = 'import mxnet'", "torch"),
        ("code", "# unlike import mxnet\nimport torch", "torch"),
        ("code", "if True:\n    import mxnet\nimport torch", "mxnet"),
    ],
)
def test_what_the_code_imports_decides(tmp_path, kind, source, expected):
    assert framework(notebook(tmp_path, kind, source)) == expected


def test_no_notebook_is_torch(tmp_path):
    assert framework("") == framework(str(tmp_path / "none.ipynb")) == "torch"


@pytest.mark.parametrize("text", ["", "[]", "1", "{}", '{"cells": 1}', '{"cells": [1, {}]}'])
def test_a_file_that_is_no_notebook_is_torch(tmp_path, text):
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    assert framework(str(path)) == "torch"


def test_the_installed_kernel_becomes_that_python(tmp_path):
    """Both "Pythons" are scripts that say who they are: the kernel must end up in the right one."""
    pythons = {}
    for name in ("mxnet", "torch"):
        pythons[name] = tmp_path / name
        pythons[name].write_text(f'#!/bin/sh\necho {name} "$@"\n')
        pythons[name].chmod(0o755)
    folder = install(str(pythons["mxnet"]), str(pythons["torch"]), prefix=str(tmp_path))
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"][0] == sys.executable
    session = notebook(tmp_path, "code", "import mxnet")
    answer = subprocess.run(
        spec["argv"],
        env={**os.environ, **spec["env"], "JPY_SESSION_NAME": session},
        capture_output=True,
        text=True,
    )
    assert answer.stdout == "mxnet -m ipykernel_launcher -f {connection_file}\n", answer.stderr
