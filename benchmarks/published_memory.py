"""Memory that others have published, beside what ``fits`` tells: a part of ``make predict``.

Needs neither a GPU nor a machine at rest. The rows are those of ``published_memory.csv``; what is
told of each goes to records/, and *What Fits* shows it. Returns how many classes of rows have
become worse than the record says: then the record stays as it is.
"""

import csv
import json
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.published_networks import NETWORKS
from d2lmgpu.memory.cards import DOES_NOT, FITS, Card, on_total
from d2lmgpu.memory.fit import Fit
from d2lmgpu.records import store
from d2lmgpu.torch.memory import fits

BYTES = {"bytes": 1, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
PATH = Path(store.FOLDER) / "published-memory.json"
FIGURES = {"allocated": "allocated", "reserved": "reserved", "used": "reserved"}
VERDICTS = "verdicts"
WORSE = 0.001  # more than this is no rounding


def rows() -> list[dict]:
    with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def size(row) -> int:
    """The published bytes."""
    return int(float(row["figure"]) * BYTES[row["unit"]])


@cache
def fit_of(name, batch_size, precision) -> Fit:
    *given, devices = NETWORKS[name]
    return fits(*given, int(batch_size), precision, devices)


def with_fit(row) -> dict:
    """The row with what ``fits`` says: the bytes and the error, or whether it fits and is right."""
    fit = fit_of(row["name"], row["batch_size"], row["precision"])
    row = row | {"bytes": size(row)}
    if row["counter"] in FIGURES:
        # `used` is what nvidia-smi said: it has the kernels, too, for which the source has a figure
        beside = int(row["beside"] or 0) * BYTES["MiB"]
        predicted = getattr(fit, FIGURES[row["counter"]]) + beside
        return row | {"predicted": predicted, "error": round(predicted / row["bytes"] - 1, 4)}
    on_card = on_total(fit.least, fit.most, Card("the card", row["bytes"], row["source"]))
    right = {"enough": FITS, "too little": DOES_NOT}[row["counter"]]
    answer = {"low": on_card.low, "high": on_card.high, "verdict": on_card.verdict}
    return row | answer | {"right": right}


def classes(fitted) -> dict[str, float]:
    """How bad each network is: its median error, and how many verdicts are wrong or left open."""
    errors = defaultdict(list)
    for row in fitted:
        if "error" in row:
            errors[f"{row['name']}, {row['counter']}"].append(abs(row["error"]))
        else:
            errors[f"{row['name']}, {VERDICTS}"].append(row["verdict"] != row["right"])
    return {name: (sum if name.endswith(VERDICTS) else median)(of) for name, of in errors.items()}


def worse(before: dict[str, float], now: dict[str, float]) -> list[str]:
    """The classes that are worse than before, in words."""
    return [
        f"{name}: {before[name]:.1%} before, {bad:.1%} now"
        for name, bad in now.items()
        if name in before and bad > before[name] + WORSE
    ]


def main() -> int:
    now = [with_fit(row) for row in rows()]
    for row in sorted(now, key=lambda row: -abs(row.get("error", 0))):
        what = f"{row['error']:+.1%}" if "error" in row else row["verdict"]
        print(f"{row['name']:15} batch {row['batch_size']:>3} {row['precision']:12} {what}")
    before = json.loads(PATH.read_text(encoding="utf-8"))["rows"] if PATH.exists() else []
    bad = worse(classes(before), classes(now))
    for line in bad:
        print(line)
    if not bad:
        record = store.provenance("python -m benchmarks.published_memory") | {"rows": now}
        store.save(PATH, record)
        print("Written to", PATH)
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
