"""All scripts and their healthy twins, five times: the table of verdicts, and what watching costs.

    pytest -q -s tests/explain/every_cause.py                    all of it, for `make soak-explain`
    EXPLAIN_ONLY=loader,sync EXPLAIN_RUNS=1 pytest -q -s …       some causes, once

The table is written to .cache/explain.md. A verdict is the one given most often; a script is stable
if it was given each time. The second script of a cause was written before the rules, by the same
author, and not looked at while they were.
"""

import os
import time
from collections import Counter
from pathlib import Path
from statistics import median

from explain_scripts import FAIR, SCRIPTS, cause_of, explained

from d2lmgpu.watch.explain.pair import OBSERVER
from d2lmgpu.watch.run import Limits, run

RUNS = int(os.environ.get("EXPLAIN_RUNS", "5"))
ONLY = [name for name in os.environ.get("EXPLAIN_ONLY", "").split(",") if name]
CHOSEN = [script for script in SCRIPTS if not ONLY or cause_of(script) in ONLY]
TABLE = Path(__file__).resolve().parents[2] / ".cache" / "explain.md"


def row(script, *arguments):
    """(verdicts, the measured speedups, seconds) of the runs."""
    verdicts, speedups, seconds = Counter(), [], []
    for _ in range(RUNS):
        start = time.monotonic()
        answer = explained(script, *arguments)
        seconds.append(time.monotonic() - start)
        verdicts[answer["cause"]] += 1
        speedups.append(answer["speedup"]["measured"])
    return verdicts, [speed for speed in speedups if speed], seconds


def test_every_cause():
    lines = ["| script | most often | all | speedup | seconds |", "|---|---|---|---|---|"]
    print(*lines, sep="\n", flush=True)
    right, healthy, stable, took = [], [], [], []
    for script in CHOSEN:
        for arguments in ((), ("--mended",)):
            verdicts, speedups, seconds = row(script, *arguments)
            most, speedup = verdicts.most_common(1)[0][0], median(speedups or [0])
            took += seconds
            stable.append(len(verdicts) == 1)
            lines.append(
                f"| {' '.join((script.stem, *arguments))} | {most} | {dict(verdicts)} | "
                f"{speedup or 'none'} | {median(seconds):.0f} |"
            )
            print(lines[-1], flush=True)
            if not arguments:
                right.append(most == cause_of(script))
            else:
                healthy.append(most == "none" or (speedup <= 1.3 and most in FAIR))
    lines.append(
        f"\n{sum(right)} of {len(right)} causes, {sum(healthy)} of {len(healthy)} twins; the same "
        f"verdict in all {RUNS} runs: {sum(stable)} of {len(stable)}; an answer took "
        f"{median(took):.0f} s (median), {max(took):.0f} s at most"
    )
    print(lines[-1])
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n")
    assert sum(right) >= 0.85 * len(right) and sum(healthy) >= 0.85 * len(healthy)


def step(script, observer):
    """Seconds of a step of two processes: the median, without the first ones."""
    limits = Limits(steps=40, seconds=10)
    (first, *_) = run(script, ["--mended"], 2, observer, limits=limits).reports
    if observer == OBSERVER:
        return median(end - start for start, end, _ in first["measured_steps"][2:])
    return median(after - before for before, after in zip(first["at"][7:], first["at"][8:]))


def test_watching_costs_at_most_a_tenth(monkeypatch):
    """Each script under ``explain`` and with a clock alone, in turn."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    ratios = {}
    for script in [script for script in CHOSEN if script.stem.endswith("_1")]:
        if cause_of(script) != "data-parallel":
            pairs = [(step(script, "clock_alone"), step(script, OBSERVER)) for _ in range(3)]
            ratios[script.stem] = median(watched / alone for alone, watched in pairs)
            print(f"| {script.stem} | {ratios[script.stem]:.3f} |", flush=True)
    print(f"a watched step takes {median(ratios.values()):.3f} times as long (median)")
    assert median(ratios.values()) <= 1.1
