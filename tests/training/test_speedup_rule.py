"""The page's rule of speedups is the package's: the same runs, the same answers."""

import pytest
from in_page import TRAINING

from d2lmgpu.records import compare, steady

EVEN, UNEVEN = [1.0] * 12, [1.0, 1.0, 1.0, 1.5] * 3  # seconds of pieces of a run, in turn
REFERENCE = "reference"


def run(devices=1, rate=100.0, pieces=EVEN, **others):
    """What a case says of a run, and what it leaves out."""
    usual = {"training": "lenet", "batch_size": 256, "epochs": 3}
    return usual | {"devices": devices, "rate": rate, "pieces": pieces} | others


CASES = {  # runs in their order, and of each how many times as fast as one device; None: not told
    "two devices": ([run(), run(2, 150.0)], [REFERENCE, 1.5]),
    "slower": ([run(), run(2, 80.0)], [REFERENCE, 0.8]),
    "of eight": ([run(), run(2, 150.0), run(8, 500.0)], [REFERENCE, 1.5, 5.0]),
    "one device comes last": ([run(2, 150.0), run()], [1.5, REFERENCE]),
    "no run on one device": ([run(2, 150.0), run(4, 300.0)], [None, None]),
    "another batch": ([run(), run(2, 150.0, batch_size=128)], [REFERENCE, None]),
    "another training": ([run(), run(2, 150.0, training="mlp")], [REFERENCE, None]),
    "other epochs": ([run(), run(2, 150.0, epochs=9)], [REFERENCE, None]),
    "among others": (
        [run(rate=10.0, training="mlp"), run(), run(2, 150.0), run(rate=9.0, epochs=9)],
        [REFERENCE, REFERENCE, 1.5, REFERENCE],
    ),
    "unsteady": ([run(), run(2, 150.0, UNEVEN)], [REFERENCE, None]),
    "its reference is unsteady": ([run(pieces=UNEVEN), run(2, 150.0)], [REFERENCE, None]),
    "more than two devices can give": ([run(), run(2, 211.0)], [REFERENCE, None]),
    "as much as two devices can give": ([run(), run(2, 209.0)], [REFERENCE, 2.09]),
}


def by_package(runs):
    """Each run is a row: none has the settings of another."""
    trials = [
        compare.Trial(
            train=one_run["training"],
            version="a",
            num_gpus=one_run["devices"],
            batch_size=one_run["batch_size"],
            lr=0.1,
            num_epochs=one_run["epochs"],
            sharing="one device" if one_run["devices"] == 1 else "in parallel",
            status="finished",
            samples_per_second=one_run["rate"],
            seconds_per_epoch=1.0,
            accuracy=0.7,
            started="",
            message="",
            unsteady=steady.unsteady(one_run["pieces"]),
        )
        for one_run in runs
    ]
    return [
        REFERENCE if row.over == row.number else None if row.remark else row.speedup
        for row in compare.rows(trials)
    ]


@pytest.fixture(scope="module")
def by_page(browser):
    with browser.new_context() as context:
        page = context.new_page()
        for name in ("steady.js", "runs.js"):
            page.add_script_tag(path=TRAINING / name)
        yield lambda runs: page.evaluate(
            """given => {
                const runs = new TrainingRuns();
                for (const { training, devices, batch_size, epochs, rate, pieces } of given) {
                    const total = pieces.reduce((sum, piece) => sum + piece, 0);
                    const samples = rate * total;
                    const settings = {
                        network: training, devices, batchSize: batch_size, lr: 0.1, epochs, seed: 0,
                    };
                    runs.add(Object.assign(TrainingRuns.begin(settings), {
                        how: "finished", cores: 8, samples, seconds: [total],
                        losses: [1], updates: [1],
                        pace: pieces.map((seconds) => [seconds, samples / pieces.length]),
                    }));
                }
                return runs.list.map((run) => {
                    const { times, why } = runs.speedup(run);
                    return times ?? (why === "reference" ? why : null);
                });
            }""",
            runs,
        )


@pytest.mark.parametrize("case", CASES)
def test_both_tell_the_same_speedups(by_page, case):
    runs, expected = CASES[case]
    for answer in (by_package(runs), by_page(runs)):
        assert answer == [
            pytest.approx(times) if isinstance(times, float) else times for times in expected
        ]
