"""Names a defect by what the ranks saw: the first rule that applies, causes before effects.

A rule takes an ``Evidence`` and the ``Comparison`` with one process (None without one) and
returns None or (defect, where, detail): where is "file:line" or None, detail a few words.
"""

from d2lmgpu.watch.check import by_evaluations, by_facts, by_gradients

RULES = (
    by_facts.aliasing,
    by_facts.not_grouped,
    by_facts.plan,
    by_facts.nothing_learned,
    by_facts.left_out,
    by_gradients.early_clip,
    by_gradients.own_norm,
    by_gradients.partly_exchanged,
    by_gradients.exchanged,
    by_gradients.different_start,
    by_facts.same_batches,
    by_facts.parts,
    by_facts.other_data,
    by_facts.overlap,
    by_gradients.other_norm,
    by_gradients.composition,
    by_gradients.against_one,
    by_gradients.optimizer_state,
    by_facts.schedule,
    by_facts.rate,
    by_facts.no_set_epoch,
    by_facts.buffers,
    by_evaluations.evaluation,
    by_facts.repeated,
    by_facts.same_seed,
)


def defect(evidence, comparison=None) -> tuple:
    """(defect, where, detail) of the first rule that applies; ("none", None, "") of none."""
    for rule in RULES:
        match = rule(evidence, comparison)
        if match:
            return match
    return "none", None, ""
