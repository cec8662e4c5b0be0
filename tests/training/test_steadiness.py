"""The page's rule of steadiness is the package's: the same numbers for the same times."""

import random

import pytest
from in_page import TRAINING

from d2lmgpu.records import steady


@pytest.fixture(scope="module")
def page(browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.add_script_tag(path=TRAINING / "steady.js")
        yield page


def times(seed):
    """A run's ``[seconds, samples]``, some of them too short, some disturbed."""
    draw = random.Random(seed)
    return [
        [draw.uniform(0.001, 0.1) * draw.choice([1, 1, 1, draw.uniform(1, 2)]), draw.randint(1, 99)]
        for _ in range(draw.randint(0, 60))
    ]


def test_both_say_the_same_of_any_run(page):
    assert page.evaluate("[TrainingSteady.MOST, TrainingSteady.PIECE]") == [
        steady.MOST,
        steady.PIECE,
    ]
    runs = [*map(times, range(300)), *([[0.06, 10]] * 9 + [[0.06 * f, 10]] * 3 for f in (1.2, 1.3))]
    theirs = page.evaluate(
        """runs => runs.map(run => {
            const pieces = TrainingSteady.pieces(run);
            return [pieces, TrainingSteady.spread(pieces), TrainingSteady.unsteady(run)];
        })""",
        runs,
    )
    for run, (pieces, spread, unsteady) in zip(runs, theirs, strict=True):
        assert steady.pieces(run) == pieces
        assert steady.spread(pieces) == spread
        assert bool(steady.unsteady(pieces)) is unsteady
    assert {unsteady for *_, unsteady in theirs} == {True, False}
