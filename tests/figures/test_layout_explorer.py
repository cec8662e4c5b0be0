"""The explorer of layouts: its script's numbers are those of the package, run by Node.js."""

import json
import math
import random
import subprocess
from dataclasses import asdict, replace

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.costmodel.layouts import (
    BAND,
    PUBLISHED,
    VERDICTS,
    Training,
    considered,
    factorings,
    memory,
    ranked,
    step,
)
from d2lmgpu.costmodel.presets import PRESETS
from d2lmgpu.course import explorers
from d2lmgpu.course.explorers import CARD_OF, GPTS, MOST_CP, MOST_TP
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.layouts import CHOICES, LayoutExplorer
from d2lmgpu.figures.site import PACKAGE

SCRIPT = PACKAGE / "figures" / "layoutmodel.js"
STEP = "compute", "tensor", "context", "sends", "bubble", "sharding", "gradients", "seconds"
HELD = "states", "gathered", "activations", "scores", "total"


def data_of(explorer):
    return json.loads(BeautifulSoup(explorer.html, "html.parser").script.string)


@pytest.fixture(scope="module")
def data():
    return data_of(explorers.layouts())


def in_node(call, *arguments):
    """What a function of the script answers to each of many arguments."""
    program = (
        f"require({json.dumps(str(SCRIPT))}); const {{given, all}} = JSON.parse("
        "require('fs').readFileSync(0, 'utf8')); process.stdout.write(JSON.stringify("
        f"all.map((one) => ({call})(given, one))));"
    )
    given, every = arguments
    done = subprocess.run(
        ["node", "-e", program],
        input=json.dumps({"given": given, "all": every}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def cases(number):
    """Layouts with trainings that can be made, drawn once and for all."""
    draw, choices = random.Random(7), []
    every = factorings(64, MOST_TP, MOST_CP)
    while len(choices) < number:
        name, layout = draw.choice([*GPTS]), draw.choice(every)
        sizes = replace(GPTS[name], tokens=2 ** draw.choice([11, 12, 15, 17]))
        micro, interleave = draw.choice([1, 2, 4, 8]), draw.choice([1, 2, 4])
        if layout.pp > sizes.blocks or (layout.pp == 1 and interleave > 1):
            continue
        batch = layout.dp * layout.fsdp * micro * draw.choice([1, 3, 8])
        training = Training(batch, micro, draw.choice([False, True]), interleave)
        choices.append((sizes, layout, training, draw.choice([*CARD_OF])))
    return choices


def as_sent(sizes, layout, training, machine):
    short = {
        "batch": training.batch,
        "micro": training.micro_batch,
        "recompute": training.recompute,
        "interleave": training.interleave,
    }
    return [asdict(sizes), asdict(layout), short, machine]


@pytest.mark.needs("node")
def test_the_script_s_memory_and_step_are_the_package_s(data):
    drawn, machines = cases(300), data["choices"]["machine"]
    call = (
        "(given, [sizes, layout, training, machine]) => ["
        "layoutModel.memory(given, sizes, layout, training), "
        "layoutModel.step(given, sizes, layout, training, machine)]"
    )
    every = [as_sent(*choice[:3], machines[choice[3]]) for choice in drawn]
    for (sizes, layout, training, name), (held, took) in zip(
        drawn, in_node(call, data["given"], every), strict=True
    ):
        ours, theirs = memory(sizes, layout, training), [held[part] for part in HELD]
        assert [getattr(ours, part) for part in HELD] == pytest.approx(theirs, rel=1e-12)
        ours, theirs = step(sizes, layout, training, PRESETS[name]), [took[part] for part in STEP]
        near = pytest.approx(theirs, rel=1e-9, abs=1e-12 * ours.seconds)
        assert [getattr(ours, part) for part in STEP] == near
        assert took["share"] == pytest.approx(ours.flops / PRESETS[name].matrix_flops, rel=1e-9)
    assert {layout.cp for _, layout, *_ in drawn} == {1, 2, 4, 8, 16}


@pytest.mark.needs("node")
def test_the_script_ranks_as_the_package_does(data):
    sizes, name = replace(GPTS["Llama 2 13B"], tokens=32_768), "A100"
    sent = [asdict(sizes), 32, 8, data["choices"]["machine"][name]]
    call = "(given, one) => layoutModel.ranked(given, ...one)"
    (theirs,) = in_node(call, data["given"], [sent])
    ours = ranked(sizes, 32, 8, PRESETS[name], CARD_OF[name], MOST_TP, MOST_CP)
    assert [candidate["verdict"] for candidate in theirs] == [
        candidate.verdict for candidate in ours
    ]
    assert {candidate.verdict for candidate in ours} == {*VERDICTS}
    by_layout = {tuple(candidate["layout"].items()): candidate for candidate in theirs}
    assert len(by_layout) == len(ours)
    for candidate in ours:
        other = by_layout[tuple(asdict(candidate.layout).items())]
        assert other["verdict"] == candidate.verdict and other.get("reason", "") == candidate.reason
        if candidate.plan is None:
            continue
        assert other["step"]["seconds"] == pytest.approx(candidate.plan.step.seconds, rel=1e-9)
        on_card = candidate.plan.memory.on(CARD_OF[name])
        assert other["within"] == pytest.approx([on_card.low, on_card.high], abs=2)
    times = [candidate["step"]["seconds"] for candidate in theirs if candidate["verdict"] == "fits"]
    assert times == sorted(times)


def test_the_explorer_offers_machines_whose_links_are_as_the_script_takes_them(data):
    for name, card in CARD_OF.items():
        machine = PRESETS[name]
        assert machine.overlap and not machine.shared and not machine.bandwidths
        assert data["choices"]["machine"][name]["cardName"] == card
    batches, lengths = (data["choices"][name].values() for name in ("batch", "sequence"))
    assert all(batch % tokens == 0 for batch in batches for tokens in lengths)
    assert data["given"]["band"] == list(BAND)
    assert [*data["choices"]["gpus"]] == ["64", "256", "1,024"]
    for sizes, billions in zip(GPTS.values(), (6.7, 13.0, 70.6, 174.6, 405.9), strict=True):
        assert sizes.parameters / 1e9 == pytest.approx(billions, rel=0.06)


def test_the_band_s_origin_and_its_misses_are_told():
    text = BeautifulSoup(explorers.layouts().html, "html.parser").get_text()
    held_out = [row for row in PUBLISHED if not row.used]
    inside = [row for row in held_out if BAND[0] <= row.times <= BAND[1]]
    assert "17 published steps" in text and "1.52 to 2.47 times as long as modelled" in text
    assert (
        f"Of {len(held_out)} more that were held out, {len(inside)} lie in the band; 3, of" in text
    )
    assert "How to factor 64 GPUs for Llama 3 70B" in text


def test_it_starts_where_no_layout_of_one_or_two_sides_alone_would_do():
    """The start is worth seeing: sequences are few and long, and the network is large."""
    start = explorers.LAYOUTS_START
    tokens, batch = (int(start[name].replace(",", "")) for name in ("sequence", "batch"))
    sizes, card = replace(GPTS[start["network"]], tokens=tokens), CARD_OF[start["machine"]]
    by_sides = {}
    for layout in factorings(64, MOST_TP, MOST_CP):
        sides = sum(size > 1 for size in asdict(layout).values())
        candidate = considered(sizes, layout, batch // tokens, PRESETS[start["machine"]], card)
        by_sides.setdefault(sides, []).append(candidate)
    assert not any(candidate.verdict == "fits" for candidate in by_sides[1])
    fits = [
        candidate for some in by_sides.values() for candidate in some if candidate.verdict == "fits"
    ]
    best = min(fits, key=lambda candidate: candidate.plan.step.seconds)
    worst = max(fits, key=lambda candidate: candidate.plan.step.seconds)
    assert best.layout.cp > 1
    assert worst.plan.step.seconds > 1.5 * best.plan.step.seconds
    assert math.isclose(best.layout.devices, 64)


@pytest.mark.parametrize(
    "wrong",
    [
        {"network": "GPT-9"},
        {"gpus": 64},
        {"colour": "red"},
        {"batch": None},
    ],
)
def test_a_start_that_is_not_offered_is_refused(wrong):
    with pytest.raises(FigureError):
        explorers.layouts(**wrong)


def test_choices_that_offer_nothing_are_refused():
    good = {name: {"one": 1} for name in CHOICES}
    start = dict.fromkeys(CHOICES, "one")
    LayoutExplorer(good, start, {}, "", "")
    for wrong in ({}, good | {"network": {}}, None, good | {"more": {"one": 1}}):
        with pytest.raises(FigureError):
            LayoutExplorer(wrong, start, {}, "", "")
