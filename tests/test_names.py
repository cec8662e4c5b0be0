"""What the code calls its state: a noun that says what is held, and no word that fits anything."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from notebook_code import python_of
from tracked import tracked

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("d2lmgpu", "tools", "hub", "benchmarks", "assets", "tests", "chapters", "exercises")
NO_NOUNS = {"told", "said", "one", "ones", "here", "way", "ways", "found"}

ALLOWED = {  # file or room -> the names that stay there, and why
    "assets/training/device.js": ({"one"}, "an algorithm's name, which readers of the page give"),
    "d2lmgpu/course/breaking/messages.py": ({"said"}, "a key of records on the disk"),
    "d2lmgpu/course/breaking/web/breaking.js": ({"said"}, "a key of records on the disk"),
    "d2lmgpu/course/exercises/checks/lab.py": ({"one"}, "an argument of the exercise's function"),
    "exercises/lab.ipynb": ({"one"}, "an argument of the exercise's function"),
    "exercises/lab.py": ({"one"}, "an argument of the exercise's function"),
    "tests/check/scripts/": (NO_NOUNS, "people's scripts, as different people write them"),
}
NO_MODULES = NO_NOUNS | {  # participles and adverbs: of what?
    "against",
    "called",
    "chosen",
    "compared",
    "counted",
    "explained",
    "given",
    "hosted",
    "installed",
    "labelled",
    "late",
    "logged",
    "plain",
    "predicted",
    "profiled",
    "published",
    "raised",
    "recorded",
    "refused",
    "stated",
}
OF_A_PAGE = "Defined in chapters/"  # says a docstring of code that is the text of a page's cell

JAVASCRIPT = [  # what makes a name: a declaration, a field, a method, an argument of an arrow
    r"\b(?:const|let|var|function)\s+(\w+)",
    r"\b(?:const|let|var)\s+[\[{]([^=;]*?)[\]}]\s*(?:=|of)",
    r"\bthis\.#?(\w+)\s*=[^=]",
    r"^\s*(?:static |async )*#?(\w+)\([^()]*\)\s*\{",
    r"^\s*(?:static |async )*#?\w+\(([^()]*)\)\s*\{",
    r"\(([^()]*)\)\s*=>",
    r"(\w+)\s*=>",
]


def in_python(text):
    """(line, name) of what is assigned, taken as an argument, or defined."""
    tree = ast.parse(text)
    of_pages = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and OF_A_PAGE in (ast.get_docstring(node) or "")
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in of_pages:
            continue
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def in_javascript(text):
    """(line, name) as above; what stands in comments is none."""
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"(^|\s)(//|/?\*).*", "", line)
        for pattern in JAVASCRIPT:
            for names in re.findall(pattern, code):
                for name in re.findall(r"\w+", names):
                    yield number, name


def in_notebook(text):
    """(line, name) as above, the lines of all code cells counted one after the other."""
    cells = nbformat.reads(text, 4).cells
    return in_python("\n".join(python_of(c.source) for c in cells if c.cell_type == "code"))


READERS = {".py": in_python, ".js": in_javascript, ".ipynb": in_notebook}


def allowed(path):
    return set().union(*(names for place, (names, _) in ALLOWED.items() if path.startswith(place)))


def names_of(path, text=None):
    """The rows of a file, or of a text that such a file could have."""
    return READERS[Path(path).suffix](path.read_text("utf-8") if text is None else text)


def nameless(path, text):
    """`file:line: name` for each name that is no noun."""
    rows = sorted(set(names_of(path, text)))
    refused = NO_NOUNS - allowed(path)
    return [f"{path}:{line}: {name}" for line, name in rows if name.lower() in refused]


@pytest.mark.parametrize("room", ROOMS)
def test_no_state_has_a_name_that_fits_anything(room):
    paths = [path for path in tracked(room) if path.suffix in READERS and ".min." not in path.name]
    assert len(paths) > 5
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    assert [row for path, text in texts.items() for row in nameless(path, text)] == []


def test_what_is_allowed_is_needed():
    for place, (names, _) in ALLOWED.items():
        if not place.endswith("/"):
            assert names == NO_NOUNS & {name.lower() for _, name in names_of(ROOT / place)}, place
        assert (ROOT / place).exists(), place


def test_no_module_is_named_by_a_participle_or_an_adverb():
    paths = [path for path in tracked(*ROOMS) if path.suffix in READERS]
    assert [path for path in paths if path.stem in NO_MODULES] == []


def test_each_kind_of_name_is_seen():
    python = "TOLD = 1\nself.said = 2\ndef f(here, *, way): pass\n[0 for one in ()]\nclass found: 0"
    rows = {"x.py:1: TOLD", "x.py:2: said", "x.py:3: here", "x.py:3: way", "x.py:4: one"}
    assert set(nameless("x.py", python)) == rows | {"x.py:5: found"}
    script = "const told = 1;\nthis.said = 2;\n  way(here) {\nxs.map((one) => 1); // (ways) =>"
    rows = {"x.js:1: told", "x.js:2: said", "x.js:3: here", "x.js:3: way", "x.js:4: one"}
    assert set(nameless("x.js", script)) == rows
    assert nameless("x.py", f'def f(one):\n    """{OF_A_PAGE}a."""\n    told = one') == []
