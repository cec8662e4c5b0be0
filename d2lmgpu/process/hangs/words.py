"""Ranks, places and collectives in words."""

import ast
import linecache
import os
import re

NUMBER = re.compile("rank|RANK|main_process|master|leader|is_main")  # what tells ranks apart
LONG = 100  # characters of a line of code


def and_list(parts) -> str:
    """ "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def ranks_in_words(ranks) -> str:
    """ "rank 0", "ranks 0 and 2"."""
    return f"rank{'s' * (len(ranks) > 1)} {and_list(map(str, ranks))}"


def updates_in_words(rank_or_call) -> str:
    """ "1 update", of a rank or of a call."""
    number = rank_or_call.updates
    return f"{number} update{'s' * (number != 1)}"


def at(place, folder, code=False) -> str:
    """ " (train.py:29)" of a (file, line, function); with its ``code``. Empty without a place."""
    if not place:
        return ""
    file, line, function = place
    name = os.path.basename(file)
    if folder and file.startswith(os.path.join(folder, "")):
        name = os.path.relpath(file, folder)
    where = f"{name}:{line}" if os.path.exists(file) else f"line {line} of {function}"
    text = linecache.getline(file, line).strip() if code else ""
    return f" ({where}{': ' * bool(text)}{text[:LONG]})"


def call_in_words(call) -> str:
    """ "all_reduce [63]", with its group."""
    shapes = " ".join(map(str, call.shapes)) if "barrier" not in call.name else ""
    group = f" in group {call.group}" if call.group else ""
    backward = " in backward" if call.backward else ""
    return f"{call.name}{' ' * bool(shapes)}{shapes}{group}{backward}"


def waiting_in_words(state) -> str:
    """What a rank waits in."""
    call = state.current
    if state.backward:
        return "loss.backward()" if call is None or call.backward else "backward()"
    return call_in_words(call) if call else state.beat.get("public") or "torch.distributed"


def end_in_words(state) -> str:
    """How a rank has ended."""
    if state.ended == "raised":
        return f"raised {state.head['text']}"
    after = f" after {updates_in_words(state)}" if state.updates else ""
    if state.ended == "killed":
        return f"was killed by {state.head['text']}{after}"
    if state.ended == "exit":
        return f"ended itself ({state.head['text']}){after}"
    return f"left its loop{after} and has ended" if after else "has ended"


def condition(places) -> str | None:
    """The innermost ``if`` around these places that tells ranks apart: "`if …:` of line 10"."""
    for file, line, _ in places:
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            continue
        around = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.If)
            and node.lineno <= line <= node.end_lineno
            and NUMBER.search(ast.unparse(node.test))
        ]
        if around:
            inner = max(around, key=lambda node: node.lineno)
            return f"`if {ast.unparse(inner.test)}:` of line {inner.lineno}"
    return None
