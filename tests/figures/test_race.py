"""The race of two allreduces: what the script is told of the plans, and what is refused."""

import json

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.collectives.schedules import plan
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.race import Race

PLANS = {name: plan(name, 3, 3000) for name in ("ring", "naive")}
START = {"size": "12 kB", "devices": 3, "first": "ring", "second": "naive"}
GOOD = {"sizes": {"12 kB": [PLANS]}, "seconds": lambda b: 1 + b, "about": "<A>", "start": START}


def data_of(race):
    return json.loads(BeautifulSoup(race.html, "html.parser").script.string)


def test_messages_are_those_of_the_plan_with_their_bytes_and_rounds_end_when_the_port_is_done():
    ring = data_of(Race(**GOOD))["sizes"]["12 kB"]["3"]["ring"]
    sends = [(s.source, s.target, s.add, 4 * len(s)) for s in PLANS["ring"].rounds[0]]
    assert [(a, b, bool(add), size) for a, b, _, _, add, size in ring["rounds"][0]] == sends
    assert ring["seconds"] == [4001.0 * rounds for rounds in range(5)]
    assert {stop - first for messages in ring["rounds"] for _, _, first, stop, *_ in messages} == {
        1
    }
    host = {"sizes": {"12 kB": [{"host": plan("host", 3, 3000)}]}}
    of = data_of(Race(**GOOD | host | {"start": START | {"first": "host", "second": "host"}}))
    assert of["sizes"]["12 kB"]["3"]["host"]["nodes"] == 4


def test_without_scripts_words_say_how_long_each_takes():
    race = Race(**GOOD)
    text = BeautifulSoup(race.html, "html.parser").get_text()
    assert repr(race) in text and "ring: 1.6e+07 ms in 4 rounds" in text and "<A>" in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": {}},
        {"sizes": None},
        {"sizes": {"x": PLANS}},
        {"sizes": {"x": [{}]}},
        {"sizes": {"x": [{"ring": 3}]}},
        {"seconds": 3},
        {"seconds": lambda b: -1.0},
        {"about": None},
        {"start": None},
        {"start": {}},
        {"start": START | {"size": "13 kB"}},
        {"start": START | {"devices": 4}},
        {"start": START | {"devices": "3"}},
        {"start": START | {"second": "tree"}},
    ],
)
def test_what_cannot_race_is_refused(wrong):
    with pytest.raises(FigureError):
        Race(**GOOD | wrong)
