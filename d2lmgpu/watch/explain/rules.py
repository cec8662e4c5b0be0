"""From what was seen to causes: facts first, then the largest measured share of the step.

A fact counts only if its share is large.
"""

from d2lmgpu.watch.explain import costs, facts
from d2lmgpu.watch.explain.causes import Cause
from d2lmgpu.watch.explain.summary import Summary

LEAST = 0.15  # of a step: what costs less is not named as the cause
MENTIONED = 0.07  # of a step: what costs less is not told at all
FACTS = (facts.data_parallel, facts.whole_data, facts.shared_core, facts.too_many_threads)
COSTS = (
    costs.loader,
    costs.exchange,
    costs.host_bound,
    costs.rank0_work,
    costs.straggler,
    costs.slow_dtype,
    costs.python,
)


def causes(run: Summary, single: Summary | None) -> list[Cause]:
    """All causes that cost something, the one to name first; empty for none."""
    stated = [cause for rule in FACTS for cause in rule(run, single) if cause.share >= LEAST]
    measured = [cause for rule in COSTS for cause in rule(run, single) if cause.share >= MENTIONED]
    return stated + sorted(measured, key=lambda cause: -cause.share)


def verdict(run: Summary, single: Summary | None) -> tuple[Cause | None, list[Cause]]:
    """(the cause that costs most or None, the others)."""
    ranked = causes(run, single)
    if ranked and ranked[0].share >= LEAST:
        return ranked[0], ranked[1:]
    return None, ranked
