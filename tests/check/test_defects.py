"""Rules on gradients that NumPy made: what is used is a sum with known coefficients."""

import io
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from d2lmgpu.watch.check.comparison import Comparison
from d2lmgpu.watch.check.evidence import Evidence
from d2lmgpu.watch.check.rules import defect
from d2lmgpu.watch.run import Watched

STEPS, SIZES = 4, [6, 5]


def evidence(used, rows=(8, 8), scale=1.0, start=0.0, norm=None):
    """Two ranks; ``used(t, own)`` is what each used in step t; own: (steps, ranks, entries)."""
    chance = np.random.default_rng(0)
    own = chance.normal(size=(STEPS + 1, 2, sum(SIZES)))
    weights = np.zeros((2, sum(SIZES))) + start * np.arange(2)[:, None]
    arrays = [{}, {}]
    for t in range(STEPS):
        gradients = used(t + 1, own)
        for r in range(2):
            arrays[r] |= {f"own-{t}-0": own[t + 1, r], f"old-{t}": own[t, r]}
            arrays[r] |= {f"used-{t}": gradients[r], f"unclipped-{t}": gradients[r]}
            arrays[r] |= {f"before-{t}": weights[r], f"after-{t}": weights[r] - gradients[r]}
        weights = weights - gradients
    reports, files = [], {}
    for r in range(2):
        file = io.BytesIO()
        np.savez(file, **arrays[r])
        files[f"kept-gradients-{r}"] = file.getvalue()
        forward_pass = {"rows": rows[r], "scale": scale, "batch": r}
        update = {"lr": [0.1], "passes": [forward_pass], "clip": None, "state": False}
        reports.append(
            {
                "rank": r,
                "updates": [update] * STEPS,
                "sizes": SIZES,
                "names": ["weight", "bias"],
                "distributed": True,
                "double": True,
                "aliased": None,
                "shared": False,
                "exchanges": 1,
                "schedule": {"counts": []},
                "epoch": None,
                "part": None,
                "optimizers": [],
                "left_out": [],
                "norm": norm or {"taken": None, "summed": None},
                "notes": {},
                "lines": {},
                "samplers": [],
                "draws": [],
                "evaluations": [],
                "evaluated": [],
                "end": "finished",
                "plan": {"unmatched": [], "where": None},
            }
        )
    return Evidence(Watched(reports, "", None, files))


def both(gradient):
    return np.stack([gradient, gradient])


@pytest.mark.parametrize(
    "name, used, options",
    [
        ("none", lambda t, own: both(own[t].mean(0)), {}),
        ("none", lambda t, own: both((5 * own[t, 0] + 3 * own[t, 1]) / 8), {"rows": (5, 3)}),
        ("mean-of-means", lambda t, own: both(own[t].mean(0)), {"rows": (5, 3)}),
        ("wrong-scale", lambda t, own: both(own[t].sum(0)), {}),
        ("wrong-scale", lambda t, own: both(own[t].mean(0) / 2), {}),
        ("none", lambda t, own: both(own[t].mean(0)) / 1024, {"scale": 1024.0}),
        ("not-exchanged", lambda t, own: own[t], {}),
        (
            "missing-parameter",
            lambda t, own: np.concatenate([both(own[t, :, :6].mean(0)), own[t, :, 6:]], 1),
            {},
        ),
        ("stale-gradient", lambda t, own: both(own[t - 1].mean(0)), {}),
        (
            "clip-before-allreduce",
            lambda t, own: both((own[t] / np.linalg.norm(own[t], axis=1, keepdims=True)).mean(0)),
            {},
        ),
        ("norm", lambda t, own: own[t].mean(0) / np.linalg.norm(own[t], axis=1, keepdims=True), {}),
        ("different-start", lambda t, own: both(own[t].mean(0)), {"start": 1.0}),
    ],
)
def test_defects_by_the_gradient_that_is_used(name, used, options):
    assert defect(evidence(used, **options))[0] == name


def test_a_missing_parameter_is_named_and_errors_are_relative():
    kept = evidence(lambda t, own: np.concatenate([both(own[t, :, :6].mean(0)), own[t, :, 6:]], 1))
    assert defect(kept)[2] == "bias"
    assert evidence(lambda t, own: both(own[t].sum(0))).errors == pytest.approx([0.5] * STEPS)


def beside(kept, gradient):
    """A comparison with one process on the same rows, whose gradient in update t is given."""
    first = {"evaluated": [], "drawn_for": False}
    alone = SimpleNamespace(used=lambda t: [gradient(t, kept.own(t))], first=first)
    comparison = SimpleNamespace(many=kept, single=alone, compared=True, near=False, steps=STEPS)
    comparison.own_lr, comparison.own_rows, comparison.forced = [[0.1]] * STEPS, None, False
    comparison.gradients = partial(Comparison.gradients, comparison)
    return comparison


@pytest.mark.parametrize(
    "name, detail, gradient",
    [
        (
            "mean-of-means",
            "rank 1's rows should weigh 75%",
            lambda t, own: (own[0] + 3 * own[1]) / 4,
        ),
        ("mean-of-means", "rank 0's rows should weigh 60%", lambda t, own: own.T @ [0.6, 0.4]),
        ("none", "", lambda t, own: 2 * own.T @ [0.6, 0.4]),  # they count twice, too: which is it?
        ("wrong-scale", "0.5 times", lambda t, own: own.sum(0)),
        (
            "none",
            "",
            lambda t, own: np.random.default_rng(t).normal(size=own[0].shape),
        ),  # other rows
        ("none", "", lambda t, own: own.mean(0)),
    ],
)
def test_what_one_device_makes_of_the_same_rows_says_how_each_should_have_counted(
    name, detail, gradient
):
    kept = evidence(lambda t, own: both(own[t].mean(0)))
    cause, _, why = defect(kept, beside(kept, gradient))
    assert cause == name and detail in why


def clipped(gradient, times):
    """A gradient of length 1 whose norm is taken to be so many times what it is."""
    return gradient / (np.linalg.norm(gradient) * times)


@pytest.mark.parametrize(
    "name, times, norm",
    [
        ("norm", lambda t: 2**0.5, {"taken": "a.py:1", "summed": "a.py:2"}),  # all squares twice
        ("norm", lambda t: 2.0, {"taken": "a.py:1", "summed": "a.py:2"}),  # all norms twice
        ("norm", lambda t: 1 + 0.1 * t, {"taken": "a.py:1", "summed": None}),  # of other gradients
        ("none", lambda t: 1.0, {"taken": "a.py:1", "summed": "a.py:2"}),
        ("none", lambda t: 1 + 0.1 * t, None),  # what shortens it is not seen
        ("none", lambda t: 1 / (1 + 0.1 * t), {"taken": "a.py:1", "summed": "a.py:2"}),
    ],
)
def test_a_norm_is_named_where_one_device_takes_a_smaller_one(name, times, norm):
    norm = norm or {"taken": None, "summed": None}
    kept = evidence(lambda t, own: both(clipped(own[t].mean(0), times(t))), norm=norm)
    cause, where, _ = defect(kept, beside(kept, lambda t, own: clipped(own.mean(0), 1)))
    assert cause == name
    assert where == (norm["summed"] or norm["taken"] if name == "norm" else None)
