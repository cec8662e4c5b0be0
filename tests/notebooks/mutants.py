"""Does a page notice one mistake in the code of its ``save`` and ``define`` cells?

    python tests/notebooks/mutants.py [--sample N] [--seed S] [chapters/….ipynb ...]

A page runs once, in a process of its own, under the test profile. In front of each cell that has
mutants the process forks: a child runs the mutated cell and what follows (see ``children``), until
the mutant is dead or all cells have run: it survives. ``equivalent.yml`` lists the mutants that no
assert could see, each with its reason. Exits with 1 if fewer than 95 % of the others die.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from children import HANG, run, verdict_on
from notebooks import NAMES, ROOT, code_cells, read, tags
from operators import Mutant, mutants

from d2lmgpu.process.cluster import state

FOLDER = Path(__file__).parent
DIE = 0.95


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant of a page: who killed it, if anybody."""

    page: str
    mutant: Mutant
    killed_by: str | None

    @property
    def key(self):
        return f"{self.page.removeprefix('chapters/').removesuffix('.ipynb')}: {self.mutant.change}"

    @property
    def fate(self):
        """What to count it as."""
        if self.killed_by is None:
            return "equivalent" if self.key in equivalent() else "survived"
        if self.key in equivalent():
            return "wrongly listed"
        return "hangs" if self.killed_by == HANG else "killed"

    def __str__(self):
        return f"{self.fate} ({self.mutant.operator}): {self.key}"


@cache
def all_mutants(name):
    """``[(number of the code cell, mutant)]`` of a page."""
    return [
        (number, mutant)
        for number, cell in enumerate(code_cells(read(ROOT / name)))
        if tags(cell) & {"save", "define"}
        for mutant in mutants(cell.source)
    ]


@cache
def equivalent():
    """{mutant: why no assert could see it}"""
    groups = yaml.safe_load((FOLDER / "equivalent.yml").read_text(encoding="utf-8"))
    return {key: group["reason"] for group in groups for key in group["mutants"]}


def outcomes(name, chosen):
    """Run a page and the ``chosen`` of its mutants; one framework a process, so in a fresh one.

    Prints the outcomes that somebody should look at as they come.
    """
    os.chdir((ROOT / name).parent)
    sys.path.insert(0, "")  # as in a kernel: modules that lie beside the page
    with tempfile.TemporaryDirectory() as folder:
        os.environ[state.VARIABLE] = f"{folder}/hosts"  # the page beside it has its own
        return fates(name, chosen)


def fates(name, chosen):
    """The outcomes, in this process."""
    cells, namespace, made = code_cells(read(ROOT / name)), {"__name__": "__main__"}, []
    limits = {}
    for number, cell in enumerate(cells[: max(at for at, _ in chosen) + 1]):
        for mutant in [mutant for at, mutant in chosen if at == number]:
            killed_by = verdict_on(cells[number:], mutant.source, namespace, limits)
            outcome = Outcome(name, mutant, killed_by)
            if outcome.fate not in ("killed", "equivalent"):
                print(outcome, flush=True)
            made.append(outcome)
        run(cell, cell.source, namespace)
    return made


def carry_out(chosen):
    """The outcomes of ``{page: [(number, mutant)]}``, two pages at a time, as the pages end.

    Pages with most mutants come first, so that no long one is left alone at the end.
    """
    os.environ["D2LMGPU_PROFILE"] = "test"
    os.environ["OMP_NUM_THREADS"] = "1"  # a forked child has no other threads, and waits for them
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawned, max_tasks_per_child=1) as pool:
        most_first = sorted(chosen.items(), key=lambda page: -len(page[1]))
        jobs = {pool.submit(outcomes, name, some): name for name, some in most_first if some}
        failed = []
        for job in as_completed(jobs):  # hours of the others are not lost with one
            if job.exception():
                failed.append(f"{jobs[job]} as it stands fails: {job.exception()!r}")
            else:
                yield job.result()
    if failed:
        raise RuntimeError("; ".join(failed))


def sample(chosen, size, seed):
    """``size`` of the mutants, the same for the same seed."""
    every = [(name, mutant) for name, some in chosen.items() for mutant in some]
    picked = random.Random(seed).sample(every, min(size, len(every)))
    return {name: [mutant for page, mutant in picked if page == name] for name in chosen}


def in_words(fates):
    """``{fate: how many}`` in words."""
    return ", ".join(f"{count} {fate}" for fate, count in fates.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", default=NAMES)
    parser.add_argument("--sample", type=int, help="only so many of the mutants")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = {name: all_mutants(name) for name in options.pages}
    if options.sample:
        chosen = sample(chosen, options.sample, options.seed)
    begin, counts = time.perf_counter(), Counter()
    for made in carry_out(chosen):
        each = Counter(outcome.fate for outcome in made)
        seconds = time.perf_counter() - begin
        print(f"{seconds:5.0f} s  {made[0].page}: {in_words(each)}", flush=True)
        counts += each
    share = 1 - counts["survived"] / max(1, counts.total() - counts["equivalent"])
    minutes = (time.perf_counter() - begin) / 60
    print(f"{counts.total()} mutants in {minutes:.1f} minutes, {share:.1%} die: {in_words(counts)}")
    return int(share < DIE or counts["wrongly listed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
