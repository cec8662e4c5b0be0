"""What each public name of d2l does, read from d2l's own source, which is parsed, not imported.

A name does what its code does, and what the names do that it uses: functions, classes, those that a
class is made from. ``python tests/dropin/what_d2l_does.py`` prints the list of
d2lmgpu/backend/refusals.py again, for another version of d2l.
"""

import ast
from importlib.util import find_spec
from pathlib import Path

FRAMEWORKS = ["torch", "mxnet"]

# What a name does, and the ends of dotted names whose use says so. The first of a name's deeds is
# the one that it is listed under.
DEEDS = {
    "trains or evaluates on one device": {"backward"},
    "fetches or loads data of its own": {
        "requests.get",
        "datasets",
        "vision",
        "DataLoader",
        "Dataset",
        "ArrayDataset",
        "TensorDataset",
        "open",
        "read_csv",
        "genfromtxt",
        "imread",
        "read_image",
        "ZipFile",
    },
    "picks devices itself": {"torch.device", "torch.cuda", "npx.cpu", "npx.gpu", "npx.num_gpus"},
    "is all of d2l": {"sys.modules"},
}
TRAINS = next(iter(DEEDS))
ITERATORS = {"data_iter", "train_iter", "test_iter"}  # arguments of a loop over data
# Not followed: d2l's name for itself, and values that are brought to the host to be drawn.
LEFT_OUT = {"d2l", "cpu"}


def source(framework: str) -> ast.Module:
    """The source of ``d2l.torch`` or ``d2l.mxnet``, parsed."""
    folder = Path(find_spec("d2l").origin).parent
    return ast.parse((folder / f"{framework}.py").read_text(encoding="utf-8"))


def dotted(node) -> str:
    """'a.b.c' of a chain of attributes; '.c' where it begins with a call or an index."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def used(node) -> set:
    """All dotted names in ``node``, each with its beginnings: a.b.c is a, a.b and a.b.c."""
    return {dotted(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}


def definitions(module: ast.Module) -> dict:
    """name -> the nodes that define it at the top of the module: d2l defines some names twice."""
    nodes_of = {}
    for node in module.body:
        names = []
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        for name in names:
            nodes_of.setdefault(name, []).append(node)
    return nodes_of


def own_deeds(node) -> set:
    """What the code of one definition does itself."""
    names = used(node)
    done = {
        deed
        for deed, ends in DEEDS.items()
        if any(f".{name}".endswith(f".{end}") for name in names for end in ends)
    }
    arguments = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return done | {TRAINS} if arguments & ITERATORS else done


def deeds(module: ast.Module) -> dict:
    """name -> the set of what it does, of each public name that does any of it."""
    defined = definitions(module)
    done = {name: set().union(*map(own_deeds, nodes)) for name, nodes in defined.items()}
    uses = {
        name: {use.removeprefix("d2l.") for use in set().union(*map(used, nodes))}
        & (defined.keys() - LEFT_OUT)
        for name, nodes in defined.items()
    }
    grown = True
    while grown:
        grown = False
        for name, others in uses.items():
            more = set().union(*(done[other] for other in others))
            grown = grown or not more <= done[name]
            done[name] |= more
    return {name: does for name, does in done.items() if does and not name.startswith("_")}


def refused(ours) -> dict:
    """deed -> the names of d2l, in either framework, that it keeps back; without ``ours``."""
    listed = {}
    for framework in FRAMEWORKS:
        for name, does in deeds(source(framework)).items():
            if name not in ours:
                first = next(deed for deed in DEEDS if deed in does)
                listed.setdefault(first, set()).add(name)
    return {deed: tuple(sorted(listed[deed])) for deed in DEEDS}


if __name__ == "__main__":
    from pprint import pprint

    from d2lmgpu import torch

    pprint(refused(torch.__all__), sort_dicts=False, width=100, compact=True)
