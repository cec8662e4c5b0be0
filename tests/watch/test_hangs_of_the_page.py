"""What hangs on the page *When It Hangs* is named by what ``check`` runs, with each rank's line.

The scripts are those of the page's cells; in a cell the page asks the same of ``launch``'s hooks.
"""

import ast
from pathlib import Path

import nbformat
import pytest
from soaking import sample

from d2lmgpu.watch.check.run import LIMITS, OBSERVER
from d2lmgpu.watch.run import run

PAGE = Path(__file__).parents[2] / "chapters" / "diagnosis" / "hangs.ipynb"
OPTIONS = {"double": False, "short": False, "devices": 2}
# name -> (ranks, the rule that names its hang, words of the cause, for ranks their code)
HANGS = {
    "forgetful.py": (
        2,
        "unlike",
        ["Only rank 0 called all_reduce", "barrier"],
        {0: "dist.all_reduce(loss)", 1: "dist.barrier()"},
    ),
    "skips.py": (
        2,
        "unlike",
        ["all_reduce", "loss.backward()"],
        {1: "dist.all_reduce(total)"},
    ),
    "shapes.py": (
        2,
        "unlike",
        ["all_reduce [3] on rank 0", "all_reduce [4] on rank 1"],
        {0: "dist.all_reduce(torch.ones(3 + rank))", 1: "dist.all_reduce(torch.ones(3 + rank))"},
    ),
    "dies.py": (
        3,
        "left",
        ["Rank 1 was killed by signal 9"],
        {0: "net(torch.ones(1, 2)).sum()", 2: "net(torch.ones(1, 2)).sum()"},
    ),
    "recorded.py": (
        3,
        "unlike",
        ["number 4", "Only rank 0 called all_reduce", "broadcast [1] on ranks 1 and 2"],
        {rank: "dist.broadcast(rate, src=0)" for rank in (1, 2)}
        | {0: "dist.all_reduce(gradient.norm())"},
    ),
    "groups.py": (
        2,
        "groups",
        ["group data", "group model"],
        dict.fromkeys((0, 1), "dist.all_reduce(torch.ones(3), group=groups[name])"),
    ),
}
NO_HANGS = ["late.py", "metrics.py", "heads.py"]


def scripts():
    """name -> source of all that the page's cells ``write``; their other lines are not run."""
    texts, names = {}, {}
    names["write"] = lambda name, body: texts.update({name: names["HEADER"] + body})
    for cell in nbformat.read(PAGE, 4).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            writes = isinstance(node, ast.Expr) and ast.unparse(node).startswith("write(")
            if writes or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
                exec(compile(ast.Module([node], []), str(PAGE), "exec"), names)
    return texts


def watched(folder, name, number):
    script = folder / name
    script.write_text(scripts()[name])
    environ = {"TIMEOUT": "60", "TRACES": str(folder), "SLOW_DISK": "yes"}
    return run(script, [], number, OBSERVER, OPTIONS, LIMITS, environ)


@pytest.mark.parametrize("name", sample(["forgetful.py"], HANGS))
def test_a_hang_of_the_page_is_named(tmp_path, name):
    number, rule, words, codes = HANGS[name]
    watched_run = watched(tmp_path, name, number)
    assert watched_run.hang is not None, (watched_run.trouble, watched_run.output)
    assert watched_run.hang.rule == rule
    for word in words:
        assert word in watched_run.hang.cause
    lines = (tmp_path / name).read_text().splitlines()
    for rank, code in codes.items():
        place = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(code))
        assert f"({name}:{place}" in watched_run.hang.ranks[rank]
        assert f"({name}:{place}" in watched_run.hang.cause


@pytest.mark.parametrize("name", sample(0, NO_HANGS))
def test_a_late_rank_strange_numbers_and_an_error_on_each_rank_are_no_hang(tmp_path, name):
    assert watched(tmp_path, name, 2).hang is None
