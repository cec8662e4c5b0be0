"""Streams of Data"""

from collections import Counter
from itertools import count

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "deal-shards",
    "First deal the shards to the ranks, as cards: who gets shard 0, shard 1, shard 2?",
    "`shards[rank::world_size]` are those of a rank. Its workers share them in the same way.",
)
def every_shard_once(shards_of, g) -> str:
    """shards_of(n, rank, world_size, worker, num_workers): a list of shard numbers."""
    for n, world_size, num_workers in (
        *((6, 2, 2), (5, 1, 3), (7, 4, 1), (3, 2, 4), (64, 8, 3)),
        (int(g.integers(20, 90)), int(g.integers(2, 6)), int(g.integers(2, 6))),
    ):
        case = f"{n} shards, {world_size} ranks with {num_workers} workers each"
        ranks = [
            [dealt(shards_of(n, r, world_size, w, num_workers), case) for w in range(num_workers)]
            for r in range(world_size)
        ]
        readers = Counter(shard for workers in ranks for shards in workers for shard in shards)
        if extra := [shard for shard in readers if shard not in range(n)]:
            raise Wrong("unknown", f"{case}: there is no shard {extra[0]}.")
        if twice := [shard for shard, times in readers.items() if times > 1]:
            text = f"{case}: {len(twice)} shards are read more than once."
            raise Wrong("twice", f"{text} Each worker of each rank is a reader of its own.")
        if len(readers) < n:
            raise Wrong("never", f"{case}: {n - len(readers)} shards are read by nobody.")
        most, least = spread([sum(map(len, workers)) for workers in ranks])
        if most > least + 1:
            text = f"{case}: one rank has {most} shards, another one {least}."
            raise Wrong("ranks", f"{text} Which readers come first when the shards are dealt?")
        for rank, workers in enumerate(ranks):
            most, least = spread([len(shards) for shards in workers])
            if most > least + 1:
                text = f"{case}: one worker of rank {rank} has {most}, another one {least}."
                raise Wrong("workers", text)
    return "Each shard is read once, and the ranks have equally many, but for one."


def dealt(shards, case) -> list:
    """Whole numbers in a list; Wrong for anything else."""
    try:
        shards = list(shards)
    except TypeError:
        kind = type(shards).__name__
        raise Wrong("type", f"{case}: a list was expected, not a {kind}.") from None
    answer = array(shards, "The list of shards", (len(shards),))
    if (answer % 1).any():
        raise Wrong("type", f"{case}: a shard's number is a whole one.")
    return answer.astype(int).tolist()


def spread(numbers) -> tuple:
    return max(numbers), min(numbers)


def by_running_out(examples, batch_size, drop_last) -> int:
    """By making the batches, of all ranks at once, until one has no more."""
    left = [list(workers) for workers in examples]
    done = 0
    while all(any(n >= (batch_size if drop_last else 1) for n in workers) for workers in left):
        for workers in left:
            workers[workers.index(max(workers))] -= batch_size
        done += 1
    return done


def of_whole_ranks(examples, batch_size, drop_last) -> int:
    up = 0 if drop_last else batch_size - 1
    return min((sum(workers) + up) // batch_size for workers in examples)


def of_all_workers(examples, batch_size, drop_last) -> list[int]:
    up = 0 if drop_last else batch_size - 1
    return [sum((n + up) // batch_size for n in workers) for workers in examples]


formula(
    "agreed-steps",
    "How many batches does one worker make? How many has its rank?",
    "Round for each worker, add the workers of a rank, and then look for the rank with the fewest.",
    cases=lambda g: (
        [
            (g.integers(0, 40, (k, workers)).tolist(), batch_size, drop_last)
            for k, workers in ((1, 1), (2, 2), (4, 3))
            for batch_size in (1, 4, 7)
            for drop_last in (False, True)
        ]
        + [([[7, 1], [5, 4]], 2, False), ([[7, 1], [5, 3]], 4, True), ([[0, 0], [9, 9]], 2, False)]
    ),
    right=by_running_out,
    slips={
        "ranks": (of_whole_ranks, "A batch never has examples of two workers."),
        "most": (
            lambda *case: max(of_all_workers(*case)),
            "The rank with the fewest batches cannot make so many.",
        ),
        "drop-last": (
            lambda examples, batch_size, drop_last: by_running_out(examples, batch_size, False),
            "With drop_last a worker leaves its last batch out if that is smaller.",
        ),
    },
    what="The number of updates",
    says="All ranks can make that many updates, and one of them no more.",
)


class Watched:
    """A stream that counts how many examples were taken from it, and breaks off at ``most``."""

    def __init__(self, examples):
        self.examples = iter(examples)
        self.taken = 0
        self.most = np.inf

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken >= self.most:
            text = f"When {self.most} examples were taken, too few had come out again."
            raise Wrong("memory", f"{text} More than `size` are held.")
        example = next(self.examples)
        self.taken += 1
        return example


def drawn(shuffled, examples, size, seed, number=None) -> list:
    """What comes out, ``number`` of them or all, with never more than ``size`` inside."""
    stream, answer = Watched(examples), []
    stream.most = size + 1  # the next one may be there before one is handed out
    for example in shuffled(stream, size, np.random.default_rng(seed)):
        answer.append(example)
        stream.most += 1
        if len(answer) == number:
            break
    return answer


@exercise(
    "buffer-end",
    "Shuffle 20 examples with a buffer of 5, and compare with what went in.",
    "At the end of the stream the buffer is still full. Its examples come out last, in an order "
    "that is drawn as well.",
)
def nothing_is_left(shuffled, g) -> str:
    """shuffled(stream, size, g): the examples of a stream, in an order of chance."""
    drawn(shuffled, count(), 10, 0, 100)
    for n, size in ((60, 8), (5, 8), (8, 8), (9, 1), (0, 4)):
        seed = int(g.integers(1 << 30))
        answer = drawn(shuffled, range(n), size, seed)
        times = Counter(answer)
        case = f"{n} examples, a buffer of {size}"
        if max(times.values(), default=0) > 1:
            raise Wrong("twice", f"{case}: some come out more than once.")
        if len(times) < n:
            raise Wrong("missing", f"{case}: {n - len(times)} never come out.")
        if drawn(shuffled, range(n), size, seed) != answer:
            raise Wrong("chance", f"{case}: the same generator draws another order.")
        if n > size > 1:
            end = answer[-size:]
            if answer == sorted(answer) or answer == drawn(shuffled, range(n), size, seed + 1):
                raise Wrong("order", f"{case}: the order does not depend on the generator.")
            ends = [drawn(shuffled, range(n), size, seed + i)[-size:] for i in range(1, 5)]
            if all(tail == sorted(tail) for tail in (end, *ends)):
                raise Wrong("tail", f"{case}: the last {size} come out in their old order.")
    return "Every example comes out once, and never more than `size` are held."
