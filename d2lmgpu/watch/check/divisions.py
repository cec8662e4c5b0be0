"""Divisions in the reader's lines that come after a call, and by which whole number they divide."""

import ast
import inspect
from functools import cache

from d2lmgpu.watch.run import source_of

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
FUNCTIONS = SCOPES[:2]
SHARES = ("world", "replica", "rank", "nproc", "gpu")  # names of how many ranks there are
COUNTS = ("world_size", "device_count")  # functions that tell it
OTHERS = ("batch", "step", "epoch", "iter")  # names of numbers of other things than rows


def divisions(watch, frame) -> list:
    """[("file:line", number)]: the divisions in the functions that have called ``frame``.

    Only those by the length of something, or by a name for a number, in lines that are not over
    yet. What the names mean is looked up now: nothing of the reader's is called but ``len``.
    """
    divisors = []
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if watch.lines.is_own(file):
            for place, divisor in _after(file, line):
                number = _number(divisor, file, line, frame)
                if number is not None:
                    divisors.append([watch.lines.where([(file, place)]), number])
        frame = frame.f_back
    return divisors


@cache
def _after(file, line):
    """[(line, divisor)] in the function of this line, of statements that end on it or later."""
    scope = _scope(file, line)
    later = [statement for statement in _statements(scope) if statement.end_lineno >= line]
    arithmetic = [part for statement in later for part in _arithmetic(statement)]
    counts = _counts(scope)
    if any(isinstance(n.op, ast.Mult) and _of_shares(n, counts) for n in arithmetic):
        return []
    divisions = [n for n in arithmetic if isinstance(n.op, ast.Div) and not _of_shares(n, counts)]
    return [(n.lineno, n.right if isinstance(n, ast.BinOp) else n.value) for n in divisions]


def _arithmetic(statement):
    return (node for node in ast.walk(statement) if isinstance(node, (ast.BinOp, ast.AugAssign)))


def _of_shares(node, counts):
    """Whether a number is scaled with how many ranks there are."""
    named = any(name in ast.unparse(node).lower() for name in SHARES)
    return named or any(isinstance(n, ast.Name) and n.id in counts for n in ast.walk(node))


def _counts(scope):
    """Names that are given how many ranks there are."""
    return {
        target.id
        for statement in _statements(scope)
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func).endswith(COUNTS)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


@cache
def _scope(file, line):
    """The innermost function that has this line, else the whole file."""
    tree = ast.parse(source_of(file))
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= node.end_lineno
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def _statements(scope):
    """The simple statements of a scope, and those in its loops and branches."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt) and not isinstance(node, SCOPES):
            if not hasattr(node, "body"):
                yield node
            yield from _statements(node)
        elif isinstance(node, (ast.excepthandler, ast.match_case)):
            yield from _statements(node)


def _number(divisor, file, line, frame):
    """The whole number by which is divided; None if that cannot be told."""
    divisor = _assigned(divisor, _scope(file, line))
    if isinstance(divisor, ast.Call) and isinstance(divisor.func, ast.Name):
        if divisor.func.id in ("float", "int") and len(divisor.args) == 1:
            return _number(divisor.args[0], file, line, frame)
        if divisor.func.id == "len" and len(divisor.args) == 1:
            value = _value(divisor.args[0], frame)
            try:
                return None if value is None else len(value)
            except Exception:  # of the reader's own class: it may raise anything
                return None
    value = _value(divisor, frame)
    of_others = any(name in ast.unparse(divisor).lower() for name in OTHERS)
    return value if type(value) is int and not of_others else None


def _assigned(name, scope):
    """What a name is for: the length that it is given in this scope, if it is."""
    for statement in _statements(scope) if isinstance(name, ast.Name) else ():
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            if name.id in targets and getattr(statement.value.func, "id", None) == "len":
                return statement.value
    return name


def _value(expression, frame):
    """What a name, or an attribute of one, means in this frame; None if it means nothing."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if isinstance(expression, ast.Attribute):
        return inspect.getattr_static(_value(expression.value, frame), expression.attr, None)
    return None
