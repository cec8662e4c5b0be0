"""The scripts beside a page hold the definitions that the page teaches, and no others."""

import ast

import agreement
from notebooks import ROOT, code_cells, read, tags, tree


def test_the_scripts_are_what_their_page_teaches():
    page = read(ROOT / "chapters" / "concise" / "torchrun.ipynb")
    taught = {
        name: node
        for cell in code_cells(page)
        if "define" in tags(cell)
        for name, node in agreement.definitions(tree(cell)).items()
    }
    written = {}
    for file in ("train_ddp.py", "train_ddp_overnight.py"):
        script = ast.parse((ROOT / "chapters" / "concise" / file).read_text())
        found = agreement.definitions(script)
        assert not written.keys() & found.keys()
        written |= found
    assert list(written) == list(taught)
    for name in written:
        assert agreement.bare(written[name]) == agreement.bare(taught[name]), name
