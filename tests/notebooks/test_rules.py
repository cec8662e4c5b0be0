"""The rules for chapters see what they are there for: each on a notebook broken in one way."""

import agreement
import hygiene
import pytest
from nbformat import v4
from notebooks import headings, sections
from rules import RULES, TEXT_RULES

CHECKED = ["nbval-check-output", "keep_output"]
IGNORED = ["nbval-ignore-output"]


def code(source, tags=IGNORED, count=1, text=None):
    outputs = [] if text is None else [v4.new_output("stream", text=text)]
    metadata = {"tags": list(tags)}
    return v4.new_code_cell(source, metadata=metadata, execution_count=count, outputs=outputs)


def notebook(*cells):
    return v4.new_notebook(
        cells=[v4.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    )


def chapter():
    """The smallest chapter without a fault."""
    return notebook(
        "# Title\n\nYou will be able to add. About 5 minutes.",
        "## Adding",
        code("print(1 + 1)", CHECKED, 1, "2\n"),
        code("assert 1 + 1 == 2", IGNORED, 2),
        "## Summary",
        "## Exercises",
    )


@pytest.mark.parametrize("rule", RULES + TEXT_RULES, ids=lambda rule: rule.__name__)
def test_chapter_without_a_fault_has_none(rule):
    assert rule(chapter()) == []


@pytest.mark.parametrize(
    "tags", [[], [*CHECKED, *IGNORED], ["nbval-check-output"], [*IGNORED, "keep_output"]]
)
def test_wrong_tags(tags):
    assert len(hygiene.tag_faults(notebook(code("1 + 1", tags)))) == 1


@pytest.mark.parametrize(
    "cell",
    [
        code("1 + 1", CHECKED),
        code("1 + 1", CHECKED, text="  \n"),
        code("1 + 1", CHECKED, count=None, text="2"),
        code("1 + 1", IGNORED, text="2"),
    ],
    ids=["no output", "blank output", "no count", "output of an unchecked cell"],
)
def test_wrong_outputs(cell):
    assert len(hygiene.output_faults(notebook(cell))) == 1


def test_picture_alone_is_no_checked_output():
    cell = code("draw()", CHECKED)
    cell.outputs = [v4.new_output("display_data", {"image/png": "aGk="})]
    assert len(hygiene.output_faults(notebook(cell))) == 1


@pytest.mark.parametrize("counts", [[2, 3], [1, 3], [2, 1], [1, None]])
def test_wrong_counts(counts):
    assert hygiene.count_faults(notebook(*(code("1", count=count) for count in counts)))


def test_line_of_code_that_the_page_would_cut():
    fits, long = "x = 1  # " + 83 * "-", "x = 1  # " + 84 * "-"
    assert hygiene.width_faults(notebook("# A", code(fits))) == []
    faults = hygiene.width_faults(notebook("# A", code("y = 2\n" + long)))
    assert faults == [f"93 characters: {long}"]
    folded = code(fits[:89], tags=["hide-input"])
    assert hygiene.width_faults(notebook("# A", folded)) == [f"89 characters: {fits[:89]}"]


def test_chapter_without_a_checked_cell():
    assert hygiene.checked_faults(notebook(code("1"))) == ["no checked cell"]


@pytest.mark.parametrize(
    "source", ["x = 1", "def f():\n    assert x", "assert True", "# assert x", "'assert x'"]
)
def test_section_that_claims_nothing(source):
    faults = hygiene.section_faults(
        notebook("# T", "## One", code("assert x"), "## A", code(source))
    )
    assert faults == ["section without an assert: A"]


@pytest.mark.parametrize("source", ["assert x", "for x in y:\n    assert x", "%time\nassert x"])
def test_section_that_claims_something(source):
    assert hygiene.section_faults(notebook("## One\n\n## A", code(source))) == []


def test_only_the_first_section_may_be_without_code():
    assert hygiene.section_faults(notebook("## Opening", "## Then", "## Summary")) == [
        "section without an assert: Then"
    ]


FOLDED = ["solution", "hide-input", *IGNORED]


def solution(source="assert 1 + 1 == 2", tags=FOLDED, hidden=True):
    cell = code(source, tags)
    cell.metadata["jupyter"] = {"source_hidden": hidden}
    return cell


def exercises(*cells):
    of_package = v4.new_markdown_cell("- [1. Add](x)", metadata={"tags": ["checked-exercises"]})
    return notebook("## Summary\n\n- 1 is one.\n\n## Exercises\n\n1. Add.", *cells, of_package)


def test_exercises_with_solutions():
    assert hygiene.solution_faults(exercises(solution(), "2. And?", solution())) == []
    assert hygiene.solution_faults(notebook("## Summary\n\n1. One.\n\n## Exercises")) == []


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [solution(), "2. And?"],
        ["2. And?", solution()],
        [solution(tags=["solution", *IGNORED])],
        [solution(tags=["hide-input", *IGNORED])],
        [solution(hidden=False)],
        [solution("x = 2")],
        [solution("print(2)\nassert x")],
        [solution(), code("assert x")],
        [solution(), "2. And?\n3. Again?", solution()],
    ],
)
def test_exercise_without_a_solution(cells):
    assert hygiene.solution_faults(exercises(*cells)) != []


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("# Title", "Title", "title"),
        ("able to", "asked to", "able"),
        ("## Exercises", "## Other", "Exercises"),
    ],
)
def test_wrong_text(old, new, fault):
    broken = chapter()
    for cell in broken.cells:
        cell.source = cell.source.replace(old, new)
    (only,) = hygiene.text_faults(broken)
    assert fault in only


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport mxnet as mx",
        "from d2lmgpu import torch as d2l\nfrom mxnet import gluon",
        "import torch.nn\nimport d2lmgpu.mxnet",
    ],
)
def test_two_frameworks(source):
    assert hygiene.framework_faults(notebook(code(source)))


def test_a_function_for_other_processes_may_import_the_other_framework():
    source = "import torch\ndef work():\n    import mxnet as mx\n    return mx.nd.ones(1)"
    assert hygiene.framework_faults(notebook(code(source))) == []


def test_headings_in_code_and_directives_are_none():
    text = "## One\n```\n## no\n```\n:::{note}\n## no\n:::\n### no\n## Two"
    assert headings(text) == ["One", "Two"]


def test_sections_hold_the_cells_below_their_heading():
    titles = [
        (t, len(cells)) for t, cells in sections(notebook("# T", code("1"), "## A", code("2")))
    ]
    assert titles == [("", 2), ("A", 2)]


# Pairs


def pair(first_function="def f(x): return 1", second_function="def f(x): return 2", title="A"):
    return notebook("## A", code(first_function)), notebook(f"## {title}", code(second_function))


def test_pair_may_differ_in_bodies():
    assert agreement.pair_faults(*pair()) == []


@pytest.mark.parametrize(
    "function", ["def f(y): return 1", "def f(x, y=1): return 1", "def g(x): return 1", "f = 1"]
)
def test_pair_with_another_function(function):
    assert agreement.pair_faults(*pair(second_function=function))


def test_pair_with_another_heading():
    assert len(agreement.pair_faults(*pair(title="B"))) == 1


def test_what_one_of_a_pair_may_have_alone():
    first, second = pair()
    second.cells += [v4.new_markdown_cell("## Extra"), code("def g(): pass")]
    assert len(agreement.pair_faults(first, second)) == 2
    assert agreement.pair_faults(first, second, {"Extra", "g"}) == []


# Saved definitions


PACKAGE = '''
def double(x):
    """Twice ``x``. Defined in
    chapters/a/one."""
    return add(x, x)

class Net(Base):
    """A net."""
    def forward(self, x):
        return double(x)
'''


@pytest.fixture
def package(tmp_path):
    for framework in ("torch", "mxnet"):
        (tmp_path / framework).mkdir()
    (tmp_path / "torch" / "nets.py").write_text(PACKAGE)
    (tmp_path / "mxnet" / "nets.py").write_text(PACKAGE.replace("add(x, x)", "x + x"))
    (tmp_path / "tools.py").write_text("def add(a, b):\n    return a + b\n")
    return tmp_path


def saved(source, framework="torch"):
    backend = code(f"from d2lmgpu import {framework} as d2l")
    return notebook(backend, code(source, ["save", *IGNORED]))


@pytest.mark.parametrize(
    "source",
    [
        "def double(x):\n    return d2l.add(x, x)",
        'def double(x):\n    "Other words."\n    return add(x, x)  # why',
        "class Net(d2l.Base):\n    def forward(self, x):\n        return d2l.double(x)",
        "def add(a, b):\n    return a + b",
    ],
)
def test_saved_definition_that_agrees(source, package):
    assert agreement.save_faults(saved(source), package) == []


@pytest.mark.parametrize(
    "source",
    [
        "def double(x):\n    return 2 * x",
        "def double(x, y=0):\n    return add(x, x)",
        "def double(x):\n    return x + x",
        "@cached\ndef double(x):\n    return add(x, x)",
        "class Net(Base):\n    def forward(self, x):\n        return x",
        "def triple(x):\n    return add(x, x)",
        "x = 1",
    ],
)
def test_saved_definition_that_differs(source, package):
    assert len(agreement.save_faults(saved(source), package)) == 1


def test_saved_definition_is_compared_with_the_chapters_own_backend(package):
    source = "def double(x):\n    return x + x"
    assert agreement.save_faults(saved(source, "mxnet"), package) == []
    assert agreement.save_faults(saved(source, "torch"), package) != []


def test_docstrings_say_where_a_definition_is_taught(package):
    assert agreement.claimed(package) == [("double", "chapters/a/one.ipynb")] * 2


@pytest.mark.parametrize(
    "text",
    [
        "two {term}`devices <device>`",
        "(a-label)=\n## A Title",
        ":::{note}\nRead this.\n:::",
        "```{code-cell}\n1 + 1\n```",
        'in <span data-built="{term}`device`">devices</span>',
        "LeNet ([LeCun, 1998](https://doi.org/10.1109/5.726791))",
        "two [devices](../reference/glossary.md#gadget)",
    ],
)
def test_what_only_the_book_would_understand(text):
    assert hygiene.markup_faults(notebook("# Title", text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "two [devices](../reference/glossary.md#device), `{x}`, and\n```python\nf(1)\n```",
        "LeNet ([LeCun et al., 1998](https://doi.org/10.1109/5.726791))",
        "[LeCun et al. (1998)](https://doi.org/10.1109/5.726791) trained [one](https://example.org)",
    ],
)
def test_what_every_notebook_shows(text):
    assert hygiene.markup_faults(notebook("# Title", text)) == []
