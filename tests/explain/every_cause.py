"""All scripts and their healthy twins, five times: the table of verdicts, for `make soak`.

    pytest -q -s tests/explain/every_cause.py

The table is written to .cache/explain.md. A verdict is the one given most often; a script is stable
if it was given each time. The second script of a cause was written before the rules, by the same
author, and not looked at while they were.
"""

from collections import Counter
from pathlib import Path

from explained import FAIR, SCRIPTS, cause_of, explained

RUNS = 5
TABLE = Path(__file__).resolve().parents[2] / ".cache" / "explain.md"


def row(script, *arguments):
    """(verdicts, the measured speedups) of five runs."""
    told = [explained(script, *arguments) for _ in range(RUNS)]
    return Counter(one["cause"] for one in told), [one["speedup"]["measured"] for one in told]


def test_every_cause():
    lines = ["| script | first verdict | all | speedup |", "|---|---|---|---|"]
    right, healthy = [], []
    for script in SCRIPTS:
        for arguments in ((), ("--mended",)):
            verdicts, speedups = row(script, *arguments)
            first = verdicts.most_common(1)[0][0]
            known = [speed for speed in speedups if speed]
            lines.append(
                f"| {' '.join((script.stem, *arguments))} | {first} | "
                f"{dict(verdicts)} | {sorted(known)[len(known) // 2] if known else ''} |"
            )
            print(lines[-1], flush=True)
            if not arguments:
                right.append(first == cause_of(script))
            else:
                fast = bool(known) and sorted(known)[len(known) // 2] > 1.3
                healthy.append(first == "none" or (not fast and first in FAIR))
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n")
    print(f"{sum(right)} of {len(right)} causes, {sum(healthy)} of {len(healthy)} twins")
    assert sum(right) >= 0.85 * len(right) and sum(healthy) >= 0.85 * len(healthy)
