"""Explorers as HTML: every choice has its answer, and what cannot be shown is refused."""

import json

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.figures.charts import timeline
from d2lmgpu.figures.explorer import MOST_BYTES, ExploreError, Explorer

CONTROLS = {"Batch size": [64, 1024], "Devices": {"one <GPU>": 1, "two": 2, "four": 4}}


def soup(explorer):
    return BeautifulSoup(explorer._repr_html_(), "html.parser")


def answers(explorer):
    """What the page can look up: each answer as HTML."""
    data = json.loads(soup(explorer).select_one("script").string)
    return [
        None if answer is None else "\n".join(data["lines"][number] for number in answer)
        for answer in data["answers"]
    ]


def test_every_choice_is_answered_once_in_the_order_of_the_controls():
    asked = []

    def answer(batch_size, k):
        asked.append((batch_size, k))
        return f"<p>{batch_size} on {k}</p>\n<p>shared</p>"

    explorer = Explorer(answer, CONTROLS)
    assert asked == [(b, k) for b in (64, 1024) for k in (1, 2, 4)]
    assert answers(explorer) == [f"<p>{b} on {k}</p>\n<p>shared</p>" for b, k in asked]
    assert explorer.html.count("shared") == 2, "once to be looked up, once shown without scripts"


def test_controls_are_native_and_labelled():
    labels = soup(Explorer(lambda *_: "x", CONTROLS)).select(".explore-controls label")
    read = {
        label.contents[0]: [o.string for o in label.select("option")]
        for label in labels
        if label.select("select")
    }
    assert read == {"Batch size": ["64", "1,024"], "Devices": ["one <GPU>", "two", "four"]}
    assert soup(Explorer(lambda *_: "x", CONTROLS)).select_one("[role=status]").string == "x"


def test_the_start_is_chosen_and_its_answer_shows_without_scripts():
    explorer = Explorer(lambda b, k: f"{b} on {k}", CONTROLS, {"Devices": "two"})
    assert [option.string for option in soup(explorer).select("[selected]")] == ["64", "two"]
    assert soup(explorer).select_one("[role=status]").string == "64 on 2"
    assert answers(explorer)[0] == "64 on 1", "the order of the answers stays"


def test_a_slider_has_the_texts_of_its_values_and_says_the_one_that_is_chosen():
    texts = {"one <GPU>": 1, "two": 2, "four": 4}
    slider = soup(Explorer(lambda k: f"{k}", {"k": texts}, {"k": "two"}, sliders=["k"])).input
    assert json.loads(slider["data-texts"]) == list(texts)
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "1")
    assert slider["aria-valuetext"] == slider.parent.span.string == "two"


def test_answers_may_be_pictures_and_may_hold_anything():
    def picture():
        return timeline({"GPU": [(0, 1, "x")]}, "Point")

    hostile = "<!-- <script>alert(1)</script> \u2028 \\n"
    explorer = Explorer(lambda k: picture() if k == 0 else hostile, {"k": [0, 1]})
    assert answers(explorer) == [picture().svg(), hostile]
    assert explorer._repr_html_().count("</script>") == 3, "nothing ends the data early"
    assert "<!-- <script" not in explorer.html, "nor keeps it from ending"


@pytest.mark.parametrize("wrong", [None, 3, [], ["x"]])
def test_an_answer_that_cannot_be_shown_is_refused(wrong):
    with pytest.raises(ExploreError, match=r"The answer to \(7,\) is .*: give HTML"):
        Explorer(lambda k: wrong, {"k": [7]})


@pytest.mark.parametrize("start", [{"Devices": "three"}, {"Device": "two"}, {"Devices": 2}])
def test_a_start_that_is_not_offered_is_refused(start):
    with pytest.raises(ExploreError, match="a control offers: Batch size: 64, 1,024; Devices: one"):
        Explorer(lambda *_: "x", CONTROLS, start)


def test_a_control_without_values_and_too_much_for_a_page_are_refused():
    with pytest.raises(ExploreError, match=r"'k' is \[\]: give a list .* at least one"):
        Explorer(lambda k: "x", {"k": []})
    with pytest.raises(ExploreError, match=r"2 choices is .* give fewer .* 1,048,576"):
        Explorer(lambda k: str(k) * MOST_BYTES, {"k": [1, 2]})


@pytest.mark.parametrize("values", [[1, "1"], [1, True], ["1", 1.0, 1], [1000, "1,000"]])
def test_two_values_that_read_alike_are_refused(values):
    with pytest.raises(ExploreError, match=r"'1.*: give each value a text of its own"):
        Explorer(lambda k: "x", {"k": values})


def test_values_that_are_equal_and_read_differently_keep_their_own_answers():
    assert answers(Explorer(lambda k: repr(k), {"k": [1, 1.0]})) == ["1", "1.0"]


@pytest.mark.parametrize(
    "given",
    [
        {"answer": None},
        {"answer": "x"},
        {"controls": None},
        {"controls": {}},
        {"controls": ["k"]},
        {"controls": {"k": 3}},
        {"controls": {"k": "abc"}},
        {"controls": {"k": {1: "x"}}},
        {"controls": {1: ["x"]}},
        {"start": ["k"]},
        {"start": {"k": ["1"]}},
        {"absent": 3},
        {"sliders": ["n"]},
        {"sliders": "k"},
        {"sliders": [["k"]]},
        {"sliders": None},
    ],
)
def test_wrong_types_are_refused(given):
    with pytest.raises(ExploreError):
        Explorer(**{"answer": lambda k: "x", "controls": {"k": [1, 2]}} | given)


def test_a_choice_may_be_without_an_answer_but_not_the_first():
    odd = dict(answer=lambda k: "x" if k % 2 else None, controls={"k": [1, 2]})
    assert answers(Explorer(**odd, absent="<p>none</p>")) == ["x", None]
    with pytest.raises(ExploreError, match=r"has no answer.* give a choice that has one"):
        Explorer(**odd, start={"k": "2"}, absent="<p>none</p>")
    with pytest.raises(ExploreError, match="The answer to"):
        Explorer(**odd)


def test_in_a_notebook_script_and_style_come_with_it_and_in_the_book_once_for_the_site(monkeypatch):
    explorer = Explorer(lambda k: "x", {"k": [1]})
    assert [part.name for part in soup(explorer).find_all(recursive=False)] == [
        "style",
        "div",
        "script",
        "script",
    ]
    monkeypatch.setenv("D2LMGPU_BOOK", "1")
    assert explorer._repr_html_() == explorer.html
