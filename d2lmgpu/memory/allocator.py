"""PyTorch's caching allocator for GPUs, as far as it decides how much memory is in use and held.

After PyTorch 2.13, c10/cuda/CUDACachingAllocator.cpp (`round_size`, `get_allocation_size`,
`get_free_block`, `should_split`, `free_block`) and c10/core/AllocatorConfig.h for the sizes.
A *segment* is what the driver gives; the allocator cuts it into *blocks*. What is given back stays
in its segment for the next request, and adjacent free blocks are joined.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

MIB = 1 << 20
ROUND = 512  # bytes: each request is a multiple of it
SMALL = MIB  # requests up to this share segments of their own
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB  # for requests below `OWN_SEGMENT`
OWN_SEGMENT = 10 * MIB  # from here on a request has its own segment, a multiple of 2 MiB
SEGMENT_ROUND = 2 * MIB


@dataclass(eq=False)  # a block is equal to itself alone
class _Block:
    size: int
    small: bool
    free: bool = False
    before: "_Block | None" = None  # neighbours in the segment
    after: "_Block | None" = None
    number: int = 0  # of its making: of equal free blocks the oldest is taken


class OutOfMemory(Exception):
    """The driver has no such segment left, even after all that is free was given back."""


class Allocator:
    """``limit``: bytes that the driver can give; None: as many as are asked for."""

    def __init__(self, limit: int | None = None):
        self.limit = limit
        self.allocated = self.reserved = 0  # bytes now
        self.most_allocated = self.most_reserved = 0
        self._free = {True: [], False: []}  # small? -> (size, number, block), sorted
        self._made = 0

    def take(self, size: int) -> _Block:
        """A block for a request of ``size`` bytes. Raises OutOfMemory."""
        size = max(ROUND, -(-size // ROUND) * ROUND)
        small = size <= SMALL
        block = self._find(size, small) or self._segment(size, small)
        rest = block.size - size
        if rest >= ROUND if small else rest > SMALL:
            self._cut(block, size)
        self.allocated += block.size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def give_back(self, block: _Block) -> None:
        """Keep the block for the next request, joined with free neighbours."""
        self.allocated -= block.size
        for neighbour in (block.before, block.after):
            if neighbour and neighbour.free:
                self._remove(neighbour)
                self._join(block, neighbour)
        self._keep(block)

    def _new(self, size, small, **where):
        self._made += 1
        return _Block(size, small, number=self._made, **where)

    def _find(self, size, small):
        free = self._free[small]
        place = bisect_left(free, (size, 0))
        if place == len(free):
            return None
        block = free.pop(place)[2]
        block.free = False
        return block

    def _segment(self, size, small):
        segment = SMALL_SEGMENT if small else LARGE_SEGMENT
        if size >= OWN_SEGMENT:
            segment = -(-size // SEGMENT_ROUND) * SEGMENT_ROUND
        if self.limit is not None and self.reserved + segment > self.limit:
            self._return_segments()
            if self.reserved + segment > self.limit:
                raise OutOfMemory
        self.reserved += segment
        self.most_reserved = max(self.most_reserved, self.reserved)
        return self._new(segment, small)

    def _return_segments(self):
        for small, free in self._free.items():
            parts = [entry for entry in free if entry[2].before or entry[2].after]
            self.reserved -= sum(size for size, *_ in free) - sum(size for size, *_ in parts)
            self._free[small] = parts

    def _cut(self, block, size):
        rest = self._new(block.size - size, block.small, before=block, after=block.after)
        if block.after:
            block.after.before = rest
        block.after, block.size = rest, size
        self._keep(rest)

    def _join(self, block, neighbour):
        block.size += neighbour.size
        if neighbour is block.before:
            block.before = neighbour.before
            if block.before:
                block.before.after = block
        else:
            block.after = neighbour.after
            if block.after:
                block.after.before = block

    def _keep(self, block):
        block.free = True
        insort(self._free[block.small], (block.size, block.number, block))

    def _remove(self, block):
        free = self._free[block.small]
        del free[bisect_left(free, (block.size, block.number))]


def replay(events, limit: int | None = None) -> Allocator:
    """The allocator after it served ``events`` (`timeline.Event`) in their order.

    Raises OutOfMemory where ``limit`` does not suffice.
    """
    allocator, blocks = Allocator(limit), {}
    for event in events:
        if event.taken:
            blocks[event.number] = allocator.take(event.size)
        else:
            allocator.give_back(blocks.pop(event.number))
    return allocator


def least(events, free: Allocator) -> int:
    """The bytes, in whole MiB, with which the allocator can just serve ``events``.

    Less than ``free`` held, which served them without a limit: at one, the allocator returns first
    what nobody uses.
    """
    too_little, enough = free.most_allocated // MIB - 1, free.most_reserved // MIB
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        try:
            replay(events, middle * MIB)
        except OutOfMemory:
            too_little = middle
        else:
            enough = middle
    return enough * MIB
