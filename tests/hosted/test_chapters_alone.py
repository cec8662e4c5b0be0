"""Chapters on a free host: the notebook alone, run there from top to bottom.

Those of ``NAMES`` in each test; `make soak-hosted` runs every one, on each Python, by
``all_chapters.py``.
"""

import pytest
from free_host import read
from soaking import sample

NAMES = [
    "foundations/data-parallelism",
    "lab/training-lab",  # other chapters, a lab, and records
    "clusters/when-a-machine-dies",  # job files
]


def run_alone(host, name, folder):
    """Run a chapter there; its first cell says that it brought the course."""
    notebook = host.run_notebook(read(name), folder)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert str(folder / "hands-on-multi-gpu") in first.outputs[0].text


@pytest.mark.parametrize("name", sample(2, NAMES))
def test_chapter_runs_alone(alone, tmp_path, name):
    run_alone(alone, name, tmp_path)
