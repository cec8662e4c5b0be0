"""What pages say of speed is tied to a check, a record or a citation; `speed` says how."""

import pytest
import speed
import yaml
from nbformat import v4
from notebooks import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "chapters").rglob("*")
    if path.suffix in (".md", ".ipynb") and ".ipynb_checkpoints" not in path.parts
)
REASONS = yaml.safe_load((ROOT / "tests/notebooks/speed_reasons.yml").read_text())


@pytest.mark.parametrize("page", PAGES)
def test_what_is_said_of_speed_is_tied_to_something_or_has_a_reason(page):
    left, reasons = speed.untied(ROOT / page), REASONS.get(page, {})
    without = [text for text in left if not any(text.startswith(start) for start in reasons)]
    assert without == [], "tie them (speed.py says how), or give a reason in speed_reasons.yml"
    used = {start for start in reasons if any(text.startswith(start) for text in left)}
    assert used == {*reasons}, "a reason for a sentence that is not there, or is tied"


@pytest.mark.parametrize("page", PAGES)
def test_a_marker_names_what_exists(page):
    assert speed.wrong_markers(ROOT / page) == []


def test_every_reason_is_of_a_page():
    assert {*REASONS} <= {*PAGES}
    assert all(len(reason) > 20 for of in REASONS.values() for reason in of.values())


# --- the rule itself, on pages made for it


@pytest.fixture
def page(tmp_path):
    """A notebook of texts and code: (source, tags, printed) for a code cell."""

    def make(*cells):
        made = []
        for cell in cells:
            if isinstance(cell, str):
                made.append(v4.new_markdown_cell(cell))
                continue
            source, tags, printed = cell
            outputs = [v4.new_output("stream", text=printed)] if printed else []
            made.append(v4.new_code_cell(source, metadata={"tags": tags}, outputs=outputs))
        path = tmp_path / "page.ipynb"
        path.write_text(v4.writes(v4.new_notebook(cells=made)))
        return path

    return make


CHECKED, IGNORED = ["nbval-check-output"], ["nbval-ignore-output"]
PRINTS = ("print(times)", IGNORED, None)


@pytest.mark.parametrize(
    "sentence",
    [
        "A larger batch makes one device faster, too.",
        "Two GPUs are slower here.",
        "It takes 1.8 times the bytes.",
        "The loop is four times as fast.",
        "They reach 95 % of the peak.",
        "Ten percent of the step is sending.",
        "That hides nearly all of it.",
        "A step takes twice as long.",
    ],
)
def test_a_sentence_above_an_output_that_nobody_checks_is_listed(page, sentence):
    assert speed.untied(page("# T", sentence, PRINTS)) == [sentence]


@pytest.mark.parametrize(
    "text",
    [
        "The times differ. We measured five times.",
        "`faster` is a name, and so is [this](settings.ipynb).",
        "Is it faster?",
        "```\nfaster\n```",
    ],
)
def test_what_says_nothing_of_speed_is_not_listed(page, text):
    assert speed.untied(page("# T", text, PRINTS)) == []


CLAIM = "Two devices are 1.8 times as fast."


@pytest.mark.parametrize(
    "cell",
    [
        ("assert seconds[2] < seconds[1]", IGNORED, None),
        ("for k in (1, 2):\n    assert np.isclose(speedup[k], k)", IGNORED, None),
        ("print(speedup)", CHECKED, "a speedup of 1.8\n"),
    ],
    ids=["an order", "a closeness in a loop", "a checked output"],
)
def test_a_check_in_the_same_section_ties(page, cell):
    assert speed.untied(page("# T", CLAIM, cell)) == []
    assert speed.untied(page("# T", cell, PRINTS, CLAIM)) == []
    assert speed.untied(page("# T", CLAIM, PRINTS, PRINTS, cell)) == [CLAIM], "too far away"
    assert speed.untied(page("# T", CLAIM, PRINTS, "## U", cell)) == [CLAIM], "of another section"


@pytest.mark.parametrize(
    "cell",
    [
        ("assert torch.allclose(ours, theirs)", IGNORED, None),
        ("assert seconds", IGNORED, None),
        ("print(parameters)", CHECKED, "True\n"),
        ("assert bytes_sent < 2 * num_bytes", IGNORED, None),
        ("assert losses[1] < losses[0] and round(accuracy) < 1", IGNORED, None),
        ("print(loss)", CHECKED, "a loss of 0.5\n"),
    ],
    ids=[
        "a closeness of something else",
        "no order",
        "a checked output without a number",
        "an order of bytes",
        "an order of losses",
        "a checked loss",
    ],
)
def test_a_check_of_something_else_does_not_tie(page, cell):
    assert speed.untied(page("# T", CLAIM, cell)) == [CLAIM]


def test_what_is_said_of_bytes_is_tied_to_bytes(page):
    claim = "A ring sends 1.5 times the bytes of the gradient."
    of_bytes = ("assert bytes_sent < 2 * num_bytes", IGNORED, None)
    of_something_else = ("assert round(accuracy) < 1", IGNORED, None)
    assert speed.untied(page("# T", claim, of_bytes)) == []
    assert speed.untied(page("# T", claim, of_something_else)) == [claim]


@pytest.mark.parametrize(
    "tied",
    [
        CLAIM[:-1] + " ([Li et al., 2020](https://arxiv.org/abs/2006.15704)).",
        CLAIM + " See [there](https://example.org).",
        CLAIM + " <!-- checked: records/cpu-2-cores-predictions.json -->",
    ],
)
def test_a_citation_or_a_marker_ties_its_paragraph_alone(page, tied):
    assert speed.untied(page("# T", tied)) == []
    assert speed.untied(page("# T", tied + "\n\n" + CLAIM)) == [CLAIM]


@pytest.mark.parametrize(
    ("mark", "right"),
    [
        ("records/cpu-2-cores-predictions.json", True),
        ("records/none.json", False),
        ("tests/notebooks/test_speed.py::test_a_marker_names_what_exists", True),
        ("tests/notebooks/test_speed.py::test_nothing", False),
        ("#Checked", True),
        ("#Unchecked", False),
        ("#No such section", False),
    ],
)
def test_a_marker_must_name_a_check(page, mark, right):
    path = page(
        f"# T\n\n{CLAIM} <!-- checked: {mark} -->",
        "## Checked",
        ("assert seconds[2] < seconds[1]", IGNORED, None),
        "## Unchecked",
        PRINTS,
    )
    assert speed.wrong_markers(path) == ([] if right else [mark])
