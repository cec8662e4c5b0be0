"""The script beside a page holds the definitions that the page teaches, and no others."""

import ast

import agreement
import pytest
from notebooks import ROOT, code_cells, read, tags, tree


@pytest.mark.parametrize(
    ("page", "file"), [("torchrun", "train_ddp.py"), ("overnight", "train_ddp_overnight.py")]
)
def test_the_script_is_what_its_page_teaches(page, file):
    folder = ROOT / "chapters" / "concise"
    taught = {
        name: node
        for cell in code_cells(read(folder / f"{page}.ipynb"))
        if "define" in tags(cell)
        for name, node in agreement.definitions(tree(cell)).items()
    }
    written = agreement.definitions(ast.parse((folder / file).read_text()))
    assert list(written) == list(taught)
    for name in written:
        assert agreement.bare(written[name]) == agreement.bare(taught[name]), name
