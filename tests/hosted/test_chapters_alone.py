"""Every page that a free host can run, there: the notebook alone, from top to bottom."""

import pytest
from conftest import ROOT, read

NAMES = [
    path.relative_to(ROOT / "chapters").with_suffix("").as_posix()
    for path in sorted(ROOT.glob("chapters/*/*.ipynb"))
]
HOSTED = [
    n
    for n in NAMES
    if any("hosted" in c.metadata.get("tags", []) for c in read(n).cells if c.cell_type == "code")
]


@pytest.mark.parametrize("name", HOSTED)
def test_chapter_runs_alone(alone, tmp_path, name):
    notebook = alone.run_notebook(read(name), tmp_path)
    course = tmp_path / "hands-on-multi-gpu"
    (first, *_) = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert str(course) in first.outputs[0].text
