"""Two agreements: a pair of chapters tells one story, and a chapter's code is the package's."""

import ast
import re
from pathlib import Path

from hygiene import frameworks
from notebooks import ROOT, code_cells, sections, tags, tree
from programs import program

PAIRS = [
    (f"chapters/{name}.ipynb", f"chapters/{chapter.facts.twin}.ipynb")
    for name, chapter in program("chapter_facts").chapters().items()
    if chapter.facts.twin
]
# What one chapter of a pair has and the other cannot have: headings and functions.
ONLY_IN = {
    # Gluon's Trainer and what it does not report: stores, and devices without data.
    "chapters/concise/mxnet.ipynb": {
        "Momentum and Adam: what is sent",
        "all_images",
        "all_of",
        "five_updates",
        "gradients",
        "in_a_loop",
        "in_threads",
        "replicas",
        "resnet_macs",
        "started",
        "train_batch",
        "two_outputs",
        "weights_after_two_steps",
    },
    # DataParallel's and DistributedDataParallel's ways: a function for each worker process.
    "chapters/concise/pytorch.ipynb": {
        "add_up",
        "different_starts",
        "evaluate",
        "fails_on_rank_1",
        "init_weights",
        "on_two_devices",
        "one_after_the_other",
        "order",
        "parameter_vector",
        "relu",
        "train_data_parallel",
        "train_shard",
        "turns_of_a_rank",
        "worker",
    },
}


def titles(notebook):
    return [title for title, _ in sections(notebook)[1:]]


def signatures(notebook):
    """``{name: arguments}`` of the functions that a chapter defines at the top of its cells."""
    return {
        node.name: ast.unparse(node.args)
        for cell in code_cells(notebook)
        for node in tree(cell).body
        if isinstance(node, ast.FunctionDef)
    }


def pair_faults(first, second, allowed=frozenset()):
    """What the two notebooks of a pair have unlike, less the names ``allowed``."""
    faults = []
    mine, twins = ([t for t in titles(nb) if t not in allowed] for nb in (first, second))
    if mine != twins:
        faults.append(f"headings differ: {mine} and {twins}")
    ours, theirs = signatures(first), signatures(second)
    for name in sorted((ours.keys() | theirs.keys()) - allowed):
        if ours.get(name) != theirs.get(name):
            faults.append(f"{name}: ({ours.get(name)}) and ({theirs.get(name)})")
    return faults


# The package's own: checks of arguments, and what times an exchange.
DECORATORS = re.compile(r"(checked|both_editions|exchange)\b")


class _Bare(ast.NodeTransformer):
    """Leaves out what may differ: docstrings, ``d2l.``, the package's decorators and types."""

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "d2l":
            return ast.Name(node.attr, node.ctx)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.decorator_list = [
            decorator
            for decorator in node.decorator_list
            if not DECORATORS.match(ast.unparse(decorator))
        ]
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        node.returns = None
        return node

    visit_ClassDef = visit_FunctionDef


def bare(node):
    """The code of a definition as the comparison sees it; ``node`` is left as it was."""
    return ast.unparse(_Bare().visit(ast.parse(ast.unparse(node))))


def definitions(module):
    """``{name: syntax tree}`` of the functions and classes at the top of a module or cell."""
    return {
        node.name: node for node in module.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }


def module_definitions(path):
    """The definitions of a module, and those that backend's functions make for a framework."""
    outer = definitions(ast.parse(path.read_text(encoding="utf-8")))
    makers = outer.values() if path.match("backend/functions.py") else []
    return outer | {name: node for maker in makers for name, node in definitions(maker).items()}


def package_definitions(framework, package=ROOT / "d2lmgpu"):
    """The definitions of one backend (None: of neither) and of the modules without a framework."""
    nodes = {}
    for path in sorted(Path(package).rglob("*.py")):
        room = path.relative_to(package).parts[0]
        if room in {"torch", "mxnet"} - {framework}:
            continue
        for name, node in module_definitions(path).items():
            if name not in nodes or room == framework:
                nodes[name] = node
    return nodes


def saved_definitions(notebook):
    return {
        name: node
        for cell in code_cells(notebook)
        if "save" in tags(cell)
        for name, node in definitions(tree(cell)).items()
    }


def save_faults(notebook, package=ROOT / "d2lmgpu"):
    """Where a cell tagged ``save`` says something else than the package."""
    (framework,) = frameworks(notebook) or {None}
    theirs = package_definitions(framework, package)
    faults = []
    for cell in code_cells(notebook):
        if "save" in tags(cell) and not definitions(tree(cell)):
            faults.append(f"a cell tagged save defines nothing: {cell.source.splitlines()[0]}")
    for name, node in saved_definitions(notebook).items():
        if name not in theirs:
            faults.append(f"{name} is tagged save, but the package has no such definition")
        elif bare(node) != bare(theirs[name]):
            faults.append(
                f"{name}: the chapter's\n{bare(node)}\nthe package's\n{bare(theirs[name])}"
            )
    return faults


def claimed(package=ROOT / "d2lmgpu"):
    """``[(name, chapter)]`` for every definition whose docstring says in which chapter it is."""
    claims = []
    for path in sorted(Path(package).rglob("*.py")):
        for name, node in module_definitions(path).items():
            words = " ".join((ast.get_docstring(node) or "").split())
            for chapter in re.findall(r"Defined in (chapters/[\w/-]+)", words):
                claims.append((name, f"{chapter}.ipynb"))
    return claims
