"""The note about free GPUs stands on the pages that would use one, and on no others."""

import re

import pytest
from hygiene import frameworks
from notebooks import NAMES, ROOT, code_cells, read, tags

# What chooses a GPU where there is one: the backend's devices, the lab and the calibration.
USES_GPU = re.compile(r"\bd2l\.(try_gpu|try_all_gpus|devices)\(|TrainingLab\(|\bcalibrate\(")


def hosted(name):
    """Kaggle and Colab have no MXNet, and the pages on clusters have a note of their own."""
    return "/clusters/" not in name and "mxnet" not in frameworks(read(ROOT / name))


def uses_gpu(notebook):
    return any(
        USES_GPU.search(cell.source) or "LOCAL_RANK" in cell.source
        for cell in code_cells(notebook)
        if "hosted" not in tags(cell)
    )


@pytest.mark.parametrize("name", [name for name in NAMES if hosted(name)])
def test_the_note_about_free_gpus_is_where_a_gpu_is_used(name):
    notebook = read(ROOT / name)
    notes = [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "markdown" and "hosted" in tags(cell)
    ]
    assert bool(notes) == uses_gpu(notebook)
    assert all("Neither host has been tried" in note for note in notes)


def test_there_are_pages_of_both_kinds():
    using = [uses_gpu(read(ROOT / name)) for name in NAMES if hosted(name)]
    assert using.count(True) >= 9 and using.count(False) >= 7
