"""The largest of a few sums against what ``fits`` said of sizes that were not counted for them."""

import csv
from pathlib import Path

import pytest

from d2lmgpu.memory import peaks
from d2lmgpu.memory.cards import CARDS, OPEN, on_card

with open(Path(__file__).with_name("peaks.csv"), encoding="utf-8", newline="") as file:
    VECTORS = list(csv.DictReader(file))
SETTING = ("precision", "optimizer", "strategy")


def numbers(row):
    return {name: int(row[name]) for name in peaks.NUMBERS.values() if row[name]}


def peak(row):
    return peaks.peak(row["kind"], *(row[name] for name in SETTING), **numbers(row))


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: "-".join(list(row.values())[:6]))
def test_the_peak_is_that_of_fits(row):
    assert peak(row) == pytest.approx(int(row["peak"]), rel=0.02)


def test_every_network_and_setting_has_its_sums():
    settings = {
        f"{precision}, {optimizer}, {strategy}"
        for precision in peaks.PRECISIONS
        for optimizer in peaks.OPTIMIZERS
        for strategy in peaks.STRATEGIES
    }
    assert {kind: of.keys() for kind, of in peaks.DATA["sums"].items()} == dict.fromkeys(
        ("GPT-2", "BERT", "Llama", "ViT-B/16", "ResNet-50", "U-Net"), settings
    )
    assert {row["kind"] for row in VECTORS} == peaks.DATA["sums"].keys()


def test_a_verdict_is_nearly_always_that_of_fits_and_never_its_contrary():
    equal = 0
    for row in VECTORS:
        for card in CARDS:
            here = peaks.fit_on(peak(row), card).verdict
            theirs = on_card(int(row["least"]), int(row["reserved"]), card).verdict
            assert here == theirs or OPEN in (here, theirs), (row, card)
            equal += here == theirs
    assert equal > 0.95 * len(VECTORS) * len(CARDS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "GPT-5"}, "^kind is 'GPT-5': give one of GPT-2, BERT"),
        ({"strategy": "ZeRO"}, "^strategy is 'ZeRO': give one of DDP, FSDP"),
        ({"batch_size": 0}, "^batch_size is 0: give"),
        ({"num_heads": None}, "^num_heads is None: give"),
    ],
)
def test_what_is_not_known_is_refused(changed, said):
    row = VECTORS[0]
    given = {"kind": row["kind"]} | {name: row[name] for name in SETTING} | numbers(row) | changed
    with pytest.raises(ValueError, match=said):
        peaks.peak(**given)
