"""All scripts, five times each, and the table of verdicts.

pytest -q -s tests/check/table.py                          all of it, for `make soak-check`
CHECK_ONLY=sampler,right CHECK_RUNS=1 pytest -q -s …       some defects, once
"""

import os
import time
from collections import Counter
from statistics import median

from scripts_of import DIFFERENT, expected

from d2lmgpu.watch.check.run import check

RUNS = int(os.environ.get("CHECK_RUNS", "5"))
ONLY = tuple(name for name in os.environ.get("CHECK_ONLY", "").split(",") if name)


def timed(path):
    """(the verdict, seconds)"""
    start = time.monotonic()
    return check(path), time.monotonic() - start


def test_verdicts_are_right_and_stay():
    chosen = {path: name for path, name in expected().items() if path.stem.startswith(ONLY or "")}
    named, stable, alarms, missed, took = 0, 0, [], [], []
    print(f"\n| script | expected | said, in {RUNS} runs | equal | difference | seconds |")
    print("|---|---|---|---|---|---|", flush=True)
    for path, wanted in chosen.items():
        timed_verdicts = [timed(path) for _ in range(RUNS)]
        counts, took = (
            Counter(verdict.defect for verdict, _ in timed_verdicts),
            took + [s for _, s in timed_verdicts],
        )
        words = ", ".join(f"{name} {times}" for name, times in counts.most_common())
        (first, _), seconds = timed_verdicts[0], median(seconds for _, seconds in timed_verdicts)
        line = f"| {path.stem} | {wanted} | {words} | {first.equal} | {first.difference:.1e} |"
        print(f"{line} {seconds:.0f} |", flush=True)
        stable += len(counts) == 1
        if wanted == "none":
            alarms += [path.stem] * (counts["none"] < RUNS)
            assert first.equal == (path.stem not in DIFFERENT), path.stem
        else:
            named += counts[wanted] == RUNS
            missed += [path.stem] * (counts["none"] > 0)
    defects = sum(wanted != "none" for wanted in chosen.values())
    print(
        f"named rightly in all runs: {named} of {defects}; the same verdict in all runs: {stable} "
        f"of {len(chosen)}; a verdict took {median(took):.0f} s (median), {max(took):.0f} s at most"
    )
    assert alarms == [] and missed == []
    assert named >= 0.85 * defects
