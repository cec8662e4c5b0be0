"""Two watched runs, with few devices and with many, and the answer that is made of them."""

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.explain.answer import BUSY, Answer
from d2lmgpu.watch.explain.facts import DATA_PARALLEL, WHOLE_DATA
from d2lmgpu.watch.explain.forecast import modelled_speedup
from d2lmgpu.watch.explain.rules import verdict
from d2lmgpu.watch.explain.summary import faster
from d2lmgpu.watch.run import Limits

OBSERVER = "d2lmgpu.watch.explain.observer"
LIMITS = Limits(steps=60, seconds=10, least=15)
PAGE = 2e-6  # seconds that the system needs for a page of memory, about
APART = {  # what a speedup in rows a second means where the work is not shared
    WHOLE_DATA: "The speedup counts the rows of all ranks, but the work is not shared: an epoch "
    "takes as long as with one device.",
    DATA_PARALLEL: "The speedup counts the rows of networks that are trained apart.",
}


def compared(look, few, many, single=None) -> tuple:
    """``look(few)``, which ``single`` may be, and ``look(many)``: Summaries, or None.

    Something else has slowed the first one down if the second is faster than so many devices can
    be: then both are done once more, and the faster ones count.
    """
    single, run_ = single or look(few), look(many)
    if single and run_ and (run_.speedup(single) or 0) > run_.k / single.k:
        single, run_ = faster(single, look(few)), faster(run_, look(many))
    return single, run_


def answer(script, single, run_, notes=(), folder="") -> Answer:
    """The answer from one Summary or two; ``notes`` come first. WatchError without a Summary."""
    if run_ is None:
        raise WatchError(
            f"{script}: fewer than 10 updates, too few to tell anything, were seen "
            f"before it or {LIMITS.wall:.0f} seconds were over."
        )
    notes = list(notes)
    if run_.queued > BUSY:
        count = "with too few cores, times count" if run_.crowded else "times are without"
        notes.append(
            f"Other programs or threads had the cores for {run_.queued:.0%} of a step; "
            f"{count} that."
        )
    cause, others = verdict(run_, single)
    if cause and run_.k > 1 and cause.kind in APART:
        notes.append(APART[cause.kind])
    modelled = modelled_speedup(single, run_)
    answered = Answer(script, single, run_, cause, others, modelled, notes, folder)
    if answered.too_good:
        notes.append(_too_good(single, run_))
    return answered


def _too_good(single, run_):
    more = single.faults / single.rows - run_.faults * run_.k / run_.rows_like(single)
    cost = more * PAGE / (single.seconds / single.rows)
    why = (
        "Why is not known: do not count on it."
        if cost < BUSY / 2
        else f"About {cost:.0%} of a step with {single.k} is the system that gives memory anew "
        "which was just given back: with MALLOC_TRIM_THRESHOLD_=1000000000 and "
        "MALLOC_MMAP_THRESHOLD_=1000000000 in the environment it is kept."
    )
    return (
        f"A row took {run_.speedup(single):.2f} times as long with {single.k} device as with "
        f"{run_.k}, which is more than they can give. {why}"
    )
