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
        f"{precision}, {strategy}"
        for precision in peaks.PRECISIONS
        for strategy in peaks.STRATEGIES
        if strategy not in peaks.SUMS_OF
    }
    assert {kind: of.keys() for kind, of in peaks.DATA["sums"].items()} == dict.fromkeys(
        ("GPT-2", "BERT", "Llama", "ViT-B/16", "ResNet-50", "U-Net"), settings
    )
    assert {row["kind"] for row in VECTORS} == peaks.DATA["sums"].keys()
    for name, offered in zip(SETTING, (peaks.PRECISIONS, peaks.OPTIMIZERS, peaks.STRATEGIES)):
        assert {row[name] for row in VECTORS} == {*offered}


def trained(**changed):
    row = VECTORS[0]
    given = {"kind": row["kind"]} | {name: row[name] for name in SETTING} | numbers(row)
    return peaks.peak(**given | changed)


def test_the_stages_of_zero_take_less_and_less():
    for kind in ("GPT-2", "Llama", "ResNet-50"):
        takes = [trained(kind=kind, strategy=s, devices=8, batch_size=1) for s in peaks.STRATEGIES]
        assert takes == sorted(takes, reverse=True), kind
    alone = {trained(strategy=strategy, devices=1) for strategy in ("DDP", "ZeRO-1")}
    assert len(alone) == 1


def test_the_first_device_of_zero_1_has_the_largest_parameter_whole():
    """GPT-2's embedding, 50,257 x 768 of 124 million, is no 64th of them."""
    letters = {"L": 12, "d": 768, "a": 64, "g": 12, "f": 3072, "V": 50257, "T": 1024}
    assert peaks.share("GPT-2", letters | {"k": 64}) == pytest.approx(38.6 / 124.4, abs=0.001)
    assert peaks.share("GPT-2", letters | {"k": 2}) == pytest.approx(1 / 2, abs=0.001)


def test_pure_16_bits_take_less_than_autocast():
    takes = [trained(precision=p) for p in ("float32", "amp bfloat16", "bfloat16")]
    assert takes == sorted(takes, reverse=True)


def test_a_verdict_is_nearly_always_that_of_fits_and_never_its_contrary():
    equal = 0
    for row in VECTORS:
        for card in CARDS:
            ours = peaks.fit_on(peak(row), card).verdict
            theirs = on_card(int(row["least"]), int(row["reserved"]), card).verdict
            assert ours == theirs or OPEN in (ours, theirs), (row, card)
            equal += ours == theirs
    assert equal > 0.95 * len(VECTORS) * len(CARDS)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "GPT-5"}, "^kind is 'GPT-5': give one of GPT-2, BERT"),
        ({"strategy": "ZeRO"}, "^strategy is 'ZeRO': give one of DDP, ZeRO-1"),
        ({"batch_size": 0}, "^batch_size is 0: give"),
        ({"num_heads": None}, "^num_heads is None: give"),
    ],
)
def test_what_is_not_known_is_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        trained(**changed)
