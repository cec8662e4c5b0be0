"""The script beside a page holds the definitions that the page teaches, and no others."""

import ast

import agreement
from notebooks import ROOT, code_cells, read, tags, tree


def test_train_ddp_is_what_its_page_teaches():
    page = read(ROOT / "chapters" / "concise" / "torchrun.ipynb")
    taught = {
        name: node
        for cell in code_cells(page)
        if "define" in tags(cell)
        for name, node in agreement.definitions(tree(cell)).items()
    }
    script = ast.parse((ROOT / "chapters" / "concise" / "train_ddp.py").read_text())
    written = agreement.definitions(script)
    assert list(written) == list(taught)
    for name in written:
        assert agreement.bare(written[name]) == agreement.bare(taught[name]), name
