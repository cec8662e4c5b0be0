"""What a harm has cost, from a log that a test has made."""

import pytest
from json_types import fault

from d2lmgpu.course.breaking import forecast, record
from d2lmgpu.course.breaking.account import Account, Harm
from d2lmgpu.course.breaking.messages import Picture, State

IMAGES = 12  # of an epoch: three updates of four, two ranks
STARTS = (4.0, 3.0)
PREDICTED = forecast.cost("worker", 2, 2, 1, 1.0, STARTS)


def life(host, pid, rank, appears, first, steps, goes=None, skip=()):
    """The lines of a worker that makes an update a second; the numbers of updates in ``steps``."""
    lines = [{"time": appears, "what": "appears"}]
    lines.append({"time": first - 0.1, "what": "begins", "rank": rank, "world_size": 2})
    for number, step in enumerate(steps):
        images = [4 * (step % 3) + 2 * rank + i for i in range(2)]
        line = {"what": "step", "rank": rank, "world_size": 2, "step": step, "epoch": step // 3}
        lines.append(
            line | {"time": first + number, "images": [i for i in images if i not in skip]}
        )
    if goes:
        lines.append({"time": goes, "what": "goes"})
    return [{"host": host, "pid": pid} | line for line in lines]


def account(harm_at=16.5, again=range(3, 12), skip=(), more=()):
    """Two hosts; updates 0 to 6 are made, and after a harm those of ``again``; 3 were saved."""
    lines = [{"time": 1.0, "what": "appears", "host": host, "pid": None} for host in ("a", "b")]
    lines += life("a", 1, 0, 5.0, 10.0, range(7), 18.0)
    lines += life("b", 2, 1, 5.2, 10.0, range(7), 17.0, skip)
    lines += life("a", 3, 0, 19.0, 22.0, again)
    lines += life("b", 4, 1, 19.5, 22.0, again)
    lines += [{"time": 12.5, "what": "saved", "host": "a", "pid": 1, "step": 3}, *more]
    made = Account(IMAGES)
    for line in sorted(lines, key=lambda line: line["time"]):
        made.add(line)
    made.now = 29.5
    return made, Harm("worker", harm_at - 1.0, PREDICTED, ended=harm_at - 1.0)


def test_the_parts_of_a_recovery():
    made, harm = account()
    cost = made.cost(harm)
    parts = {"notice": 1.5, "meet": 1.5, "start": 2.5, "redo": 3.0, "together": 8.5}
    assert {name: cost[name] for name in parts} == pytest.approx(parts)
    assert cost["updates"] == 4 and cost["images"] == 16
    assert cost["lost"] == cost["twice"] == 0


def test_images_that_are_lost_or_come_twice_are_counted():
    made, harm = account(skip=(2,), harm_at=12.2, again=range(7, 12))
    assert made.cost(harm)["lost"] == 1, "image 2 of the first epoch"
    twice = {
        "time": 10.5,
        "what": "step",
        "host": "a",
        "pid": 1,
        "rank": 0,
        "world_size": 2,
        "step": -1,
        "epoch": 0,
        "images": [0, 1],
    }
    made, harm = account(harm_at=12.2, more=[twice])
    assert made.cost(harm)["twice"] == 2


def test_what_is_not_over_has_no_sum():
    made, harm = account(again=range(3, 5))
    cost = made.cost(harm)
    assert cost["start"] == 2.5 and "together" not in cost
    made, harm = account(again=())
    assert made.cost(harm) == {}


def test_the_lanes_say_what_each_host_did():
    away = [
        {"time": time, "what": what, "host": "b", "pid": None}
        for time, what in ((16.8, "goes"), (19.2, "appears"))
    ]
    made, _ = account(more=away)
    spans = [(what, a, b) for what, a, b in made.spans("b", 0, 40)]
    assert spans == [
        ("starts Python", 4.2, 9.0),
        ("trains", 9.0, 15.0),
        ("silent", 15.0, 16.0),
        ("is away", 16.0, 18.2),
        ("meets", 18.2, 18.5),
        ("starts Python", 18.5, 21.0),
        ("trains", 21.0, 29.5),
    ]
    assert ["saves", 11.0, 11.5] in made.spans("a", 0, 40)
    picture = made.picture(15.0, 20.0)
    assert fault(picture, Picture) is None
    lanes = picture["lanes"]
    assert lanes["b"][0] == ["silent", 0.0, 1.0] and lanes["b"][-1] == ["starts Python", 3.5, 5.0]


def test_a_pause_without_a_restart_is_the_longest_wait():
    made, _ = account()
    harm = Harm("slow", 22.5, forecast.cost("slow", 2, 2, 1, 1.0, STARTS), ended=22.5)
    cost = made.cost(harm)
    assert cost["pause"] == cost["update"] == 1.0 and cost["updates"] == cost["images"] == 0


def test_what_is_predicted_is_a_sum_of_the_scripts_own_options():
    cost = forecast.cost("cut", 3, 3, 7, 0.1, STARTS)
    assert cost["ranks"] == 2 and cost["images"] == 7 * 120
    parts = {"notice": 5.0, "meet": 2.0, "start": 3.0, "redo": pytest.approx(0.7)}
    assert {name: cost[name] for name in parts} == parts
    assert cost["together"] == pytest.approx(10.7)
    host = forecast.cost("host", 3, 3, 7, 0.1, STARTS)
    assert host["notice"] == 0.5 and host["meet"] == 1 + 1 + 3, "a sign of life is missed thrice"
    assert forecast.cost("worker", 3, 3, 7, 0.1, STARTS)["notice"] == 0.5
    assert forecast.cost("worker", 2, 3, 7, 0.1, STARTS)["meet"] == 2, "one host is missing"
    heal = forecast.cost("heal", 2, 3, 7, 0.1, STARTS)
    assert heal["ranks"] == 3 and heal["updates"] == 0 and heal["notice"] == 8.5
    assert forecast.cost("launcher", 3, 3, 7, 0.1, STARTS)["meet"] == 4


def test_a_slow_link_is_as_slow_as_its_bytes():
    cost = forecast.cost("slow", 3, 3, 7, 0.05, STARTS)
    assert cost["update"] == pytest.approx(4 / 3 * 407_136 * 8 / 10e6)
    assert not cost["restart"] and cost["updates"] == 0 and cost["pause"] == cost["update"]
    back = forecast.cost("quicken", 3, 3, 7, cost["update"], STARTS)
    assert back["update"] == pytest.approx(cost["update"] / 10)


def test_what_was_recorded_is_what_its_type_says():
    assert fault(record.recorded()["outcomes"], State.__annotations__["outcomes"]) is None
