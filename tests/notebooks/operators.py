"""The mistakes that a mutant makes: one fixed list of operators on the code of a cell.

An operator is given a node of the syntax tree and gives back what could stand in its place. What
is only shown (text, prints, drawings) is left alone.
"""

import ast
import copy
from dataclasses import dataclass

EXCHANGES = {"allreduce", "all_reduce", "step", "backward", "sgd", "zero_grad"}
OTHER_SIGN = {ast.Add: ast.Sub, ast.Sub: ast.Add}
OTHER_BOUND = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True)
class Mutant:
    """A cell's code with one mistake in it: by which operator, which lines, and all of it."""

    operator: str
    change: str
    source: str


def sign(node):
    """a + b as a - b, and the other way round; -a as a."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OTHER_SIGN:
        yield _with(node, op=OTHER_SIGN[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand


def dropped_term(node):
    """One side alone of a sum or a product; nothing in place of a += b."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        yield node.left
        if not isinstance(node.op, ast.Sub):
            yield node.right
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()


def wrong_divisor(node):
    """Divided by twice as much."""
    if isinstance(getattr(node, "op", None), (ast.Div, ast.FloorDiv)):
        side = "right" if isinstance(node, ast.BinOp) else "value"
        doubled = ast.BinOp(ast.Constant(2), ast.Mult(), getattr(node, side))
        yield _with(node, **{side: doubled})


def no_copy(node):
    """The same array where there should be a copy, or another one where it should be the same."""
    if isinstance(node, ast.keyword) and node.arg == "copy":
        yield _with(node, value=ast.Constant(False))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("copy", "clone"):
            yield node.func.value
        if node.func.attr == "deepcopy":
            yield node.args[0]
        if node.func.attr == "copyto":
            yield _with(node, func=_with(node.func, attr="as_in_ctx"))
    if isinstance(node, ast.Assign) and _whole(node.targets[0]):  # x[:] = y as x = y
        yield _with(node, targets=[node.targets[0].value])
    if isinstance(node, ast.AugAssign) and _whole(node.target):
        yield _rebound(node, node.target.value)
    if isinstance(node, ast.For):  # for x in …: x -= y as x = x - y
        names = {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
        for number, line in enumerate(node.body):
            if isinstance(line, ast.AugAssign) and getattr(line.target, "id", None) in names:
                lines = [*node.body[:number], _rebound(line, line.target), *node.body[number + 1 :]]
                yield _with(node, body=lines)


def skipped_allreduce(node):
    """A step of the training, or an exchange, that does not take place."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if getattr(called, "attr", getattr(called, "id", None)) in EXCHANGES:
            yield ast.Pass()


def off_by_one(node):
    """n + 1 for a whole number n, one turn less of a loop, < for <=."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("range", "len"):
        last = node.args[-1]
        if node.func.id == "len":
            yield ast.BinOp(node, ast.Sub(), ast.Constant(1))
        elif not isinstance(last, ast.Constant) and len(node.args) < 3:
            less = ast.BinOp(last, ast.Sub(), ast.Constant(1))
            yield _with(node, args=[*node.args[:-1], less])
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_BOUND:
        yield _with(node, ops=[OTHER_BOUND[type(node.ops[0])](), *node.ops[1:]])


OPERATORS = [sign, dropped_term, wrong_divisor, no_copy, skipped_allreduce, off_by_one]


def mutants(source):
    """All mutants of a cell's code, each with one mistake, in the order of the operators."""
    tree = ast.parse(source)
    original, seen, made = ast.unparse(tree), set(), []
    for operator in OPERATORS:
        for node in _code(tree):
            for replacement in operator(node):
                mutated = ast.unparse(_Swap(node, replacement).visit(copy.copy(tree)))
                if mutated not in seen | {original}:
                    seen.add(mutated)
                    name = operator.__name__.replace("_", " ")
                    made.append(Mutant(name, _change(original, mutated), mutated))
    return made


class _Swap(ast.NodeTransformer):
    """A tree with ``new`` in place of the node ``old``; the tree that is visited stays as it is."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().visit(copy.copy(node))

    def generic_visit(self, node):
        for field, value in ast.iter_fields(node):
            setattr(node, field, list(value) if isinstance(value, list) else value)
        return super().generic_visit(node)


def _code(tree):
    """The nodes of a tree in the order of the text, without what is only shown."""
    for child in ast.iter_child_nodes(tree):
        if not _shown(child):
            yield child
            yield from _code(child)


def _shown(node):
    shows = ("print", "d2l.Animator", "animator.add")
    call = isinstance(node, ast.Call) and ast.unparse(node.func) in shows
    return call or isinstance(node, ast.JoinedStr)


def _with(node, **fields):
    """A copy of ``node`` with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _whole(target):
    """Whether a target is ``x[:]``."""
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Slice)
        and not any(dict(ast.iter_fields(target.slice)).values())
    )


def _rebound(node, target):
    """x = x + y in place of x += y."""
    read = copy.copy(target)
    read.ctx = ast.Load()
    return ast.Assign([target], ast.BinOp(read, node.op, node.value), lineno=0)


def _change(before, after):
    """'the lines that differ → what they are now'."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return " → ".join(" / ".join(line.strip() for line in lines) for lines in (old, new))
