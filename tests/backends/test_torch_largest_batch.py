"""The largest batch that fits, against every batch."""

import pytest
import torch
from torch import nn

from d2lmgpu.memory import cards
from d2lmgpu.torch.memory import fits, largest_batch
from d2lmgpu.torch.memory.largest import MOST, last

SIZES = {
    "a line": lambda n: 100 + 7 * n,
    "steps": lambda n: 20 * ((100 + 7 * n) // 20),
    "squares": lambda n: 50 + n * n,
    "flat, then steep": lambda n: 10 if n < 90 else 10 + 50 * (n - 89),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("room", [1, 57, 107, 114, 800, 12345])
def test_it_is_the_last_of_all_that_fit_and_few_are_asked(name, room):
    asked = set()

    def size(n):
        asked.add(n)
        return SIZES[name](n)

    right = max((n for n in range(1, 3000) if SIZES[name](n) <= room), default=0)
    assert last(size, room) == right
    assert len(asked) <= 24


def test_what_does_not_grow_has_no_largest():
    assert last(lambda n: 5, 10) == MOST


def test_a_network_on_a_card():
    def net():
        return nn.Sequential(nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 8192))

    def batch(n):
        return (torch.rand(n, 8192),)

    given = net, batch, lambda net, X: net(X).square().mean(), torch.optim.Adam
    sure, at_most = largest_batch(*given, "RTX 2080 Ti")
    verdicts = [fits(*given, n).on("RTX 2080 Ti").verdict for n in (sure, sure + 1)]
    assert verdicts == [cards.FITS, cards.OPEN]
    verdicts = [fits(*given, n).on("RTX 2080 Ti").verdict for n in (at_most, at_most + 1)]
    assert verdicts == [cards.OPEN, cards.DOES_NOT]
    assert 1000 < sure < at_most < 2 * sure
