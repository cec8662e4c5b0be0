"""Published speedups beside predicted ones: ``python -m benchmarks.speedups``, in a second.

The rows of tests/published/rates.csv that have a run on one GPU beside them, of one machine. The
publications, each a file or a page with one or more tables, are split in two by a rule without
chance, `split`. What `d2lmgpu.costmodel.speedups` knows is learned from one half. How it is learned
was chosen there, too, by leaving out one table, then one publication, at a time (`FORMS`). The
other half was looked at once, when all that was settled; its errors are in records/.
"""

import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

from d2lmgpu.costmodel.model import PRESETS, Work, step, wait_seconds
from d2lmgpu.costmodel.speedups import DELAYS, Range
from d2lmgpu.records import store

PUBLISHED = Path(__file__).parents[1] / "tests" / "published"
RECORD = store.FOLDER / "cpu-2-cores-speedups.json"
TRAINING = [
    "table_id",
    "network",
    "framework",
    "precision",
    "batch_per_device",
    "gpu",
    "machine",
    "interconnect",
    "unit",
]
COUNTED = ("images", "sequences", "sentences", "samples")  # units that a batch is counted in, too
DOCUMENT = re.compile(r"(\S+?)(?: at (\w+), (?:(\S+)/)?.*)?$")  # repository, commit, folder; or URL
LEVELS = (0.05, 0.5, 0.95)
GROUPS = {"NVLink and NVSwitch": ("NVLink", "NVSwitch"), "all": tuple(DELAYS)}


@dataclass(frozen=True)
class Row:
    """A published rate of k GPUs of one machine, beside that of one with the same batch on each."""

    publication: str
    table: str  # and the card, where a table has several
    network: str
    links: str
    k: int
    speedup: float
    seconds: float | None  # of one GPU's step, where the batch is counted in the rate's unit
    modelled: float  # speedup by the preset's exchange; k where bytes or seconds are not known

    @property
    def stretch(self) -> float:
        """How many times as long as one GPU's step that of k GPUs takes."""
        return self.k / self.speedup


def read(name) -> list:
    with open(PUBLISHED / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def published() -> list[Row]:
    """All rows of one machine that have a run on one GPU beside them."""
    rates, links, sizes = read("rates"), read("links"), read("networks")
    links = {(row["gpu"], row["machine"]): row for row in links}
    sizes = {row["network"]: row["parameters_millions"] for row in sizes}
    alone = defaultdict(list)
    for row in rates:
        if row["num_gpus"] == "1":
            alone[tuple(row[name] for name in TRAINING)].append(float(row["rate"]))
    rows = []
    for row in rates:
        k, of_one = int(row["num_gpus"]), alone[tuple(row[name] for name in TRAINING)]
        # Where a table does not say how many machines, no machine of its kind has more than eight.
        if k > 1 and of_one and (row["num_nodes"] or ("1" if k <= 8 else "")) == "1":
            size = row["parameters_millions"] or sizes.get(row["network"])
            rows.append(_row(row, k, median(of_one), links[row["gpu"], row["machine"]], size))
    return rows


def _row(row, k, of_one, links, size) -> Row:
    batch, seconds, modelled = row["batch_per_device"], None, k
    if batch and row["unit"].split("/")[0] in COUNTED:
        seconds = int(batch) / of_one
    if seconds and size:
        bits = 8 * int(row["gradient_bytes_per_parameter"] or 4)
        work = Work.of_parameters(1e6 * float(size), 1 / of_one, bits)
        preset = PRESETS[links["preset"]]
        machine = replace(preset, devices=max(k, preset.devices))  # all in one, as published
        modelled = step(work, machine, k, k * int(batch)).samples_per_second / of_one
    publication = " ".join(filter(None, DOCUMENT.match(row["source"]).groups()))
    table = f"{row['table_id']} {row['gpu']}"
    speedup = float(row["rate"]) / of_one
    return Row(publication, table, row["network"], links["links"], k, speedup, seconds, modelled)


def split(rows) -> tuple[list[Row], list[Row]]:
    """Rows to learn from, and rows to keep: a publication is in one of the two as a whole.

    Kinds of links with the fewest publications come first. Of each kind its publications, in the
    order of their tables' names, go to the half that has fewer of that kind; to the first if equal.
    """
    of_kind, first_table = defaultdict(set), {}
    for row in sorted(rows, key=lambda row: row.table):
        of_kind[row.links].add(row.publication)
        first_table.setdefault(row.publication, row.table)
    learned = {}
    for kind in sorted(of_kind, key=lambda kind: (len(of_kind[kind]), kind)):
        for publication in sorted(of_kind[kind] - learned.keys(), key=first_table.get):
            counts = Counter(learned.get(other) for other in of_kind[kind])
            learned[publication] = counts[True] <= counts[False]
    return tuple(
        [row for row in rows if learned[row.publication] is half] for half in (True, False)
    )


def quantile(values, tables, level) -> float:
    """Of values, each of a table: every table counts the same, however many values it has."""
    counts, order = Counter(tables), np.argsort(values, kind="stable")
    weights = np.array([1 / counts[table] for table in tables])[order]
    place = (np.cumsum(weights) - weights / 2) / weights.sum()
    return float(np.interp(level, place, np.array(values)[order]))


@dataclass(frozen=True)
class Form:
    """stretch = base + factor x term: the factor is a quantile of the rows of the same group."""

    term: Callable
    base: Callable = lambda row: 1.0
    group: Callable = lambda row: row.links

    def learn(self, rows, level=0.5) -> Callable:
        """A function that gives the stretch of a row."""
        groups = defaultdict(list)
        for row in rows:
            groups[self.group(row)].append(row)
            groups[None].append(row)  # for a group that has none
        factors = {
            name: quantile(
                [(row.stretch - self.base(row)) / self.term(row) for row in of],
                [row.table for row in of],
                level,
            )
            for name, of in groups.items()
        }

        def stretch(row):
            factor = factors.get(self.group(row), factors[None])
            return self.base(row) + factor * self.term(row)

        return stretch


def waits(row) -> float:
    """What `wait_seconds` adds to a step of one device, for a mean delay of 1."""
    return wait_seconds(row.k, 1.0) - 1


def by_model(row) -> float:
    return row.k / row.modelled


FORMS = {
    "a constant for the links": Form(lambda row: 1),
    "a constant for links and k": Form(lambda row: 1, group=lambda row: (row.links, row.k)),
    "sending in a ring, (k-1)/k": Form(lambda row: (row.k - 1) / row.k),
    "waits, growing with log k": Form(waits),
    "waits beside the modelled exchange": Form(waits, base=by_model),
    # Where the batch is not told: 0.5 s, near the median of the steps where it is.
    "seconds, whatever a step takes": Form(lambda row: 1 / (row.seconds or 0.5)),
}
CHOSEN = FORMS["waits, growing with log k"]


def off(rows, stretch) -> list[float]:
    """Relative errors of predicted rates."""
    return [row.stretch / stretch(row) - 1 for row in rows]


def middle(errors) -> float:
    return median(map(abs, errors))


def left_out(rows, by) -> Iterator[tuple[list, ...]]:
    """For each table or publication: (its rows, all others)."""
    for name in dict.fromkeys(getattr(row, by) for row in rows):
        yield tuple(
            [row for row in rows if (getattr(row, by) == name) is own] for own in (True, False)
        )


def error_left_out(form, rows, by) -> float:
    """Mean over tables or publications of the median error, each learned from all others."""
    return fmean(middle(off(own, form.learn(others))) for own, others in left_out(rows, by))


def inside_left_out(rows, by) -> float:
    """Share of the rows inside of the range that all other tables or publications give."""
    inside = []
    for own, others in left_out(rows, by):
        least, most = (CHOSEN.learn(others, level) for level in (LEVELS[0], LEVELS[-1]))
        inside += [least(row) <= row.stretch <= most(row) for row in own]
    return fmean(inside)


def delays(rows) -> dict[str, Range]:
    """What `d2lmgpu.costmodel.speedups` has as `DELAYS`."""
    return {
        kind: Range(
            *(
                round(
                    quantile(
                        [(row.stretch - 1) / waits(row) for row in of],
                        [row.table for row in of],
                        level,
                    ),
                    3,
                )
                for level in LEVELS
            )
        )
        for kind in DELAYS
        for of in [[row for row in rows if row.links == kind]]
    }


def score(rows, known) -> dict[str, float]:
    """Median errors of the linear guess, of the presets' exchange and of ``known``, and coverage.

    known: a `Range` for each kind of links, as `DELAYS`. "own medians" tells what no number for
    links and k can know: it is the error of those that were learned from these rows themselves.
    """
    own = FORMS["a constant for links and k"].learn(rows)
    inside = [
        1 + known[row.links].low * waits(row)
        <= row.stretch
        <= 1 + known[row.links].high * waits(row)
        for row in rows
    ]
    return {
        "rows": len(rows),
        "tables": len({row.table for row in rows}),
        "k times one": middle(off(rows, lambda row: 1.0)),
        "exchange": middle(off(rows, by_model)),
        "expected": middle(off(rows, lambda row: 1 + known[row.links].middle * waits(row))),
        "own medians": middle(off(rows, own)),
        "inside": fmean(inside),
    }


def scores(rows, known) -> dict[str, dict]:
    """`score` of each kind of links and of `GROUPS`."""
    groups = {kind: (kind,) for kind in DELAYS} | GROUPS
    return {
        name: score([row for row in rows if row.links in kinds], known)
        for name, kinds in groups.items()
    }


def figures() -> dict:
    """All that is recorded: the choice, both directions, and the rows that were kept."""
    rows = published()
    learned, kept = split(rows)
    groupings = ("table", "publication")
    return {
        "publications": {
            half: sorted({row.publication for row in of})
            for half, of in (("learned", learned), ("kept", kept))
        },
        "left_out": {
            name: {by: error_left_out(form, learned, by) for by in groupings}
            for name, form in FORMS.items()
        },
        "inside_left_out": {by: inside_left_out(learned, by) for by in groupings},
        "inside_left_out_of_all": inside_left_out(rows, "publication"),
        "learned": scores(learned, DELAYS),
        "kept": scores(kept, DELAYS),
        "other_way_round": scores(learned, delays(kept)),
        "rows": [[row.table, row.network, row.links, row.k, row.speedup] for row in kept],
    }


def worse(now: dict, recorded: dict) -> list[str]:
    """Kinds of links whose kept rows are further off, or less often inside, than recorded."""
    return [
        name
        for name, before in recorded["kept"].items()
        if now["kept"][name]["expected"] > before["expected"] + 1e-6
        or now["kept"][name]["inside"] < before["inside"] - 1e-6
    ]


def main() -> int:
    """Print the figures; with ``--record``, write them; returns how many kinds got worse."""
    now = figures()
    for name, errors in now["left_out"].items():
        print(
            f"{name:36} left out: a table {errors['table']:.1%}, "
            f"a publication {errors['publication']:.1%}"
        )
    for half in ("learned", "kept", "other_way_round"):
        for name, of in now[half].items():
            print(
                f"{half:15} {name:25} {of['rows']:3} rows: {of['k times one']:.1%}, with the "
                f"exchange {of['exchange']:.1%}, expected {of['expected']:.1%}, "
                f"{of['inside']:.0%} inside"
            )
    print(f"each publication by all others: {now['inside_left_out_of_all']:.0%} inside")
    if "--record" in sys.argv:
        record = store.provenance("python -m benchmarks.speedups --record")
        print("Written to", store.write(store.FOLDER, "speedups", record | now))
        return 0
    return len(worse(now, store.read(RECORD)))


if __name__ == "__main__":
    sys.exit(main())
