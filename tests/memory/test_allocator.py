"""The model of PyTorch's allocator against its documented sizes, and laws that hold for any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.memory.allocator import MIB, Allocator, OutOfMemory, least, replay
from d2lmgpu.memory.timeline import Event, Timeline

# After the constants of c10/core/AllocatorConfig.h: one request of a new process.
FIRST = {  # bytes -> (allocated, reserved)
    1: (512, 2 * MIB),
    512: (512, 2 * MIB),
    513: (1024, 2 * MIB),
    MIB: (MIB, 2 * MIB),
    MIB + 1: (MIB + 512, 20 * MIB),
    10 * MIB - 512: (10 * MIB - 512, 20 * MIB),
    10 * MIB: (10 * MIB, 10 * MIB),
    10 * MIB + 1: (10 * MIB + 512, 12 * MIB),
    11 * MIB: (12 * MIB, 12 * MIB),  # what remains is too small to be cut off
    21 * MIB - 512: (21 * MIB - 512, 22 * MIB),
    21 * MIB: (22 * MIB, 22 * MIB),
}


@pytest.mark.parametrize("size", FIRST)
def test_the_first_request(size):
    allocator = Allocator()
    allocator.take(size)
    assert (allocator.allocated, allocator.reserved) == FIRST[size]


def test_what_was_given_back_is_taken_again_and_neighbours_are_joined():
    allocator = Allocator()
    first, second = allocator.take(6 * MIB), allocator.take(6 * MIB)
    allocator.give_back(first)
    allocator.give_back(second)
    allocator.take(9 * MIB)  # of the 20 that are one block again
    assert allocator.reserved == 20 * MIB


def test_small_and_large_requests_share_nothing():
    allocator = Allocator()
    allocator.give_back(allocator.take(6 * MIB))
    allocator.take(1024)
    assert allocator.reserved == 22 * MIB


def test_at_the_limit_whole_segments_are_returned_first_and_cut_ones_are_not():
    allocator = Allocator(limit=40 * MIB)
    allocator.give_back(allocator.take(30 * MIB))
    allocator.take(36 * MIB)
    assert allocator.reserved == 36 * MIB
    allocator = Allocator(limit=40 * MIB)
    whole, _ = allocator.take(10 * MIB - 512), allocator.take(2 * MIB)
    allocator.give_back(whole)  # its segment is still in use
    with pytest.raises(OutOfMemory):
        allocator.take(30 * MIB)


@st.composite
def lifetimes(draw):
    """Events of storages in an order that can be, all given back in the end."""
    sizes = draw(st.lists(st.integers(1, 30 * MIB), min_size=1, max_size=30))
    events, alive = [], []
    for number, size in enumerate(sizes):
        events.append(Event(number, size, True))
        alive.append(number)
        for _ in range(draw(st.integers(0, 2))):
            if alive:
                gone = alive.pop(draw(st.integers(0, len(alive) - 1)))
                events.append(Event(gone, sizes[gone], False))
    return events, [Event(gone, sizes[gone], False) for gone in alive]


@given(lifetimes())
def test_no_byte_is_lost(events):
    during, after = events
    timeline = Timeline(during + after)
    allocator = replay(during + after)
    requested = timeline.totals()[timeline.peak()]
    assert requested <= allocator.most_allocated <= allocator.most_reserved
    assert allocator.allocated == 0
    free = [block for blocks in allocator._free.values() for _, _, block in blocks]
    assert sum(block.size for block in free) == allocator.reserved
    assert not any(block.before or block.after for block in free), "all are whole segments again"


@given(lifetimes())
def test_the_least_memory_suffices_and_less_does_not(events):
    during, after = events
    free = replay(during + after)
    needed = least(during + after, free)
    assert free.most_allocated <= needed <= free.most_reserved
    assert replay(during + after, needed).most_reserved <= needed
    with pytest.raises(OutOfMemory):
        replay(during + after, needed - MIB)


def test_a_block_that_nobody_needs_is_returned_for_another():
    events = [Event(0, 30 * MIB, True), Event(0, 30 * MIB, False), Event(1, 36 * MIB, True)]
    free = replay(events)
    assert (free.most_reserved, least(events, free)) == (66 * MIB, 36 * MIB)
