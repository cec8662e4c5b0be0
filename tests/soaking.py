"""CI has a sample of a test's cases; ``make soak-marked`` has the further ones."""

import pytest


def soaked(*cases):
    """The same cases for ``parametrize``, marked; a tuple has a value for each of its names."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
        for case in cases
    ]


def sample(kept, cases):
    """``cases``, of which all but ``kept``, or the first so many, are soaked."""
    cases = [*cases]
    kept = cases[:kept] if isinstance(kept, int) else kept
    return [case if case in kept else soaked(case)[0] for case in cases]
