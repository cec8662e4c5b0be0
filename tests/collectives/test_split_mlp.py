"""The plan of an MLP that is cut over ranks: run, it gives output and gradients of one device."""

import numpy as np
import pytest

from d2lmgpu.collectives.split_mlp import BACKWARD, FORWARD, PLACEMENTS, START, execute, part

SHAPES = {"X": (5, 4), "A": (4, 12), "B": (12, 4), "dY": (5, 4)}


def arrays():
    g = np.random.default_rng(0)
    return [g.normal(size=shape) for shape in SHAPES.values()]


def by_torch(X, A, B, dY):
    """Output and gradients, from autograd."""
    torch = pytest.importorskip("torch")
    X, A, B = (torch.from_numpy(array).requires_grad_() for array in (X, A, B))
    H = X @ A
    H.retain_grad()
    Z = torch.nn.functional.gelu(H)
    Y = Z @ B
    Y.backward(torch.from_numpy(dY))
    right = {"X": X, "A": A, "B": B, "H": H, "Z": Z, "Y": Y}
    gradients = {f"d{name}": right[name].grad for name in "XABH"}
    return {name: t.detach().numpy() for name, t in (right | gradients).items()} | {"dY": dY}


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_rank_holds_its_part_of_what_one_device_has(k):
    right, moments, placements = by_torch(*arrays()), execute(*arrays(), k), dict(START)
    assert [step for step, _ in moments] == [None, *FORWARD, *BACKWARD]
    for step, held in moments:
        if step:
            placements[step.makes] = step.placement
        for name, placement in placements.items():
            assert placement in PLACEMENTS
            if placement == "term":
                assert np.allclose(sum(held[name]), right[name], rtol=1e-12)
                continue
            for rank in range(k):
                own = right[name][part(placement, right[name].shape, k, rank)]
                assert np.allclose(held[name][rank], own, rtol=1e-12, atol=1e-12), name
    assert set(placements) | {"dY"} == set(right)


def test_parts_are_all_of_it_once():
    for placement, sides in (("columns", (1, 4)), ("rows", (4, 1))):
        seen = np.zeros((12, 12))
        for rank in range(4):
            own = seen[part(placement, seen.shape, 4, rank)]
            own += 1
            assert own.shape == (12 // sides[0], 12 // sides[1])
        assert (seen == 1).all()
    with pytest.raises(ValueError, match="5 equal parts"):
        execute(*arrays(), 5)
