"""A Sphinx extension: a cell shows its lesson; its checks and what is longer than a screen fold.

The ``assert`` statements of a cell's top level stand below its code, behind a line that says that
they held when the page was made, and what was checked if comments above them say so. Code of more
lines than ``LONG`` shows its first ones; a button shows the rest. On a phone there are fewer.
In a notebook all stands where it was written.
"""

import ast
import re
from html import escape

from docutils import nodes

LONG, LONG_ON_A_PHONE = 25, 12  # lines; assets/pages/pages.css has them, too
CHECKS = "checks"  # the class of what is folded
FOLDED = {"tag_hide-input", "tag_hide-cell", "tag_remove-input", "tag_remove-cell"}


def fold(app, doctree) -> None:
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code" or FOLDED & {*cell["classes"]}:
            continue
        (part,) = (part for part in cell if part.get("nb_element") == "cell_code_source")
        if not has_failed(cell):
            fold_checks(part, app.config.nb_execution_mode != "off")
        fold_lines(part)


def has_failed(cell) -> bool:
    blocks = cell.findall(nodes.literal_block)
    return any(
        "traceback" in block["classes"] or block.get("language") == "ipythontb" for block in blocks
    )


def fold_checks(part, were_made: bool) -> None:
    """Take the checks out of the code of a cell, and put them below it."""
    block = part.next_node(nodes.literal_block)
    lesson, checks, number, words = divided(block.astext())
    if not number:
        return
    count = "1 assertion" if number == 1 else f"{number} assertions"
    summary = escape("; ".join(words)) or count
    word = "Checked when this page was made" if were_made else "Checks"
    below = block.deepcopy()
    below[:], below.rawsource = [nodes.Text(checks)], checks
    below["classes"].append(CHECKS)
    opening = f'<details class="{CHECKS}"><summary>{word}: {summary}</summary>'
    ends = [nodes.raw("", text, format="html") for text in (opening, "</details>")]
    part += [ends[0], below, ends[1]]
    if lesson:
        block[:], block.rawsource = [nodes.Text(lesson)], lesson
    else:
        part.remove(block)


def divided(code: str) -> tuple[str, str, int, list[str]]:
    """The code without its checks, the checks, how many they are, and what comments say of them."""
    try:
        statements = ast.parse(re.sub(r"^(\s*)[%!]", r"\1#", code, flags=re.M)).body
    except SyntaxError:
        return code, "", 0, []
    lines, taken, words, number = code.splitlines(), set(), [], 0
    for statement in statements:
        if not isinstance(statement, ast.Assert):
            continue
        first, number = statement.lineno - 1, number + 1
        comment = []
        while first > 0 and lines[first - 1].startswith("# "):
            first -= 1
            comment.insert(0, lines[first].removeprefix("# "))
        words += [" ".join(comment).rstrip(".")] if comment else []
        taken |= set(range(first, statement.end_lineno))
    lesson = "\n".join(line for i, line in enumerate(lines) if i not in taken)
    checks = "\n".join(lines[i] for i in sorted(taken))
    return re.sub(r"\n{3,}", "\n\n", lesson).strip("\n"), checks, number, words


def fold_lines(part) -> None:
    """Mark long code, and give it its button."""
    block = part.next_node(nodes.literal_block)
    count = len(block.astext().splitlines())
    if CHECKS in block["classes"] or count <= LONG_ON_A_PHONE:
        return
    part["classes"].append("long-code" if count > LONG else "long-on-a-phone")
    button = f'<label class="more-code"><input type="checkbox"> all {count} lines</label>'
    part.insert(part.index(block) + 1, nodes.raw("", button, format="html"))


def setup(app) -> dict[str, bool]:
    app.connect("doctree-read", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
