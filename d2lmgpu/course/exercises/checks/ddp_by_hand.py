"""DDP by Hand"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes, note
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise

SHAPES = ((3, 4), (4,), (2, 2, 2), (1,))


@exercise(
    "one-message",
    "What does a message cost that is almost empty? How could several gradients be one tensor?",
    "`torch.cat` of the flattened gradients is one tensor. After the allreduce, `split` it again "
    "and copy each part back: the gradients themselves have to change.",
)
def mean_in_one_message(average, g) -> str:
    """average(*grads): each becomes the mean over the ranks, in place, with one message."""
    grads = [[g.normal(size=shape) for shape in SHAPES] for _ in range(2)]
    mean = [np.mean(of_ranks, axis=0) for of_ranks in zip(*grads)]
    ranks = in_processes(average, grads)
    for rank, after in enumerate(ranks.arrays):
        _are_means(after, mean, grads[rank], rank)
    if max(ranks.messages) > 1:
        text = f"A rank starts {max(ranks.messages)} messages; one is enough."
        raise Wrong("messages", text)
    return "Both processes hold the means, and each sent one message."


def _are_means(after, mean, before, rank):
    """Wrong unless a rank's gradients are now the means over both ranks."""
    for number, (gradient, expected) in enumerate(zip(after, mean)):
        off = distance(gradient, expected)
        if off > 1e-9:
            text = f"On rank {rank} gradient {number} is {off:.1%} off."
            if distance(gradient, 2 * expected) < 1e-9:
                raise Wrong("sum", f"{text} The ranks' gradients are added, and not averaged.")
            if np.array_equal(gradient, before[number]):
                raise Wrong("unchanged", f"{text} It is what it was before.")
            raise Wrong("value", text)


@exercise(
    "pass-on",
    "Draw who waits for whom. Who is the first that can go on?",
    "`dist.isend` returns at once, with a handle. Start it, receive, and only then wait for it.",
)
def from_the_left(pass_on, g) -> str:
    """pass_on(x): what the rank before this one, in the ring, has given as x."""
    values = [[g.normal(size=5)] for _ in range(2)]
    ranks = in_processes(pass_on, values)
    for rank, answer in enumerate(ranks.results):
        answer = array(answer, f"What rank {rank} returns", (5,))
        off = distance(answer, values[rank - 1][0])
        if off > 1e-9:
            own = np.array_equal(answer, values[rank][0])
            text = f"Rank {rank} returns {'its own x' if own else 'something else'}."
            raise Wrong("own" if own else "value", text)
    for rank, (x,) in enumerate(ranks.arrays):
        if not np.array_equal(x, values[rank][0]):
            raise Wrong("changed", f"The x of rank {rank} is another one afterwards.")
    return "Each process has what the one before it had, and nobody waits for ever."


def from_the_end(sizes, most) -> list[int]:
    """By putting the parameters, from the last one on, into the buckets themselves."""
    buckets = []
    for i in reversed(range(len(sizes))):
        if not buckets or sum(sizes[j] for j in (i, *buckets[-1])) > most:
            buckets.append([])
        buckets[-1].append(i)
    number_of = {i: number for number, bucket in enumerate(buckets) for i in bucket}
    return [number_of[i] for i in range(len(sizes))]


def from_the_start(sizes, most) -> list[int]:
    return from_the_end(sizes[::-1], most)[::-1]


def one_too_many(sizes, most) -> list[int]:
    numbers, bucket, held = [0] * len(sizes), 0, 0
    for i in reversed(range(len(sizes))):
        numbers[i] = bucket
        held += sizes[i]
        if held >= most:
            bucket, held = bucket + 1, 0
    return numbers


formula(
    "bucket-order",
    "Which gradient is there first in the backward pass? It goes into bucket 0.",
    "A parameter opens the next bucket if it does not fit into this one any more; one that is "
    "larger than a bucket has a bucket of its own.",
    cases=lambda g: [
        (g.integers(1, 40, n).tolist(), most) for n in (1, 7, 30) for most in (10, 50, 2000)
    ],
    right=from_the_end,
    slips={
        "start": (from_the_start, "The first gradient that is there is the last layer's."),
        "over": (one_too_many, "In it a bucket may hold more than it has room for."),
    },
    what="The list of bucket numbers",
    says="Buckets are filled from the end of the network, and none is too full.",
    sized=False,
)


ROOM = 20  # numbers in a bucket
SOME = (3, 4), (8,), (2, 3), (1,), (5, 3), (5,)
LAST = (25,), (3, 4), (2, 2, 2)  # too large for a bucket, and two that fill one to the last number


@exercise(
    "leave-when-full",
    "Take the gradients one by one. When do you know that a bucket is full? What has to happen "
    "before you ask for the next gradient?",
    "Keep a list of (gradients, flat buffer, handle), one entry for each bucket that has left. The "
    "last bucket leaves after the loop. Then go through the list: wait, divide, copy back.",
)
def buckets_leave_early(average, g) -> str:
    """average(grads, limit): each gradient becomes the mean, in place; full buckets leave early."""
    shapes = [*(SOME[i] for i in g.permutation(len(SOME))), *LAST]
    grads = [[g.normal(size=shape) for shape in shapes] for _ in range(2)]
    mean = [np.mean(of_ranks, axis=0) for of_ranks in zip(*grads)]
    sizes = [gradient.size for gradient in mean]
    buckets = from_the_start(sizes, ROOM)
    right = np.bincount(buckets, sizes).astype(int).tolist()
    ranks = in_processes(partial(_one_by_one, average, ROOM), grads)
    for rank, (after, calls) in enumerate(zip(ranks.arrays, ranks.calls)):
        _are_means(after, mean, grads[rank], rank)
        sent = [call.numbers for call in ranks.sent[rank]]
        if sent != right:
            text = f"The gradients have {sizes} numbers, the messages of rank {rank} {sent}."
            if sent == sizes:
                raise Wrong("each", f"{text} Each gradient has left by itself.")
            if any(numbers > ROOM and numbers not in sizes for numbers in sent):
                raise Wrong("over", f"{text} A bucket has room for {ROOM}.")
            raise Wrong("messages", f"{text} The buckets should be {len(right)} others.")
        _in_time(calls, buckets)
    return "Both processes hold the means, and each bucket left as soon as it was full."


def _one_by_one(average, limit, *grads):
    """In a rank: a generator hands the gradients out, and notes when it is asked for each."""

    def one_by_one():
        for grad in grads:
            note("gradient")
            yield grad

    average(one_by_one(), limit)


def _in_time(calls, buckets):
    """Wrong unless all buckets before a gradient's have left before the next one is asked for."""
    left = asked = 0
    for call in calls:
        if call.name == "gradient":
            if asked and left < buckets[asked - 1]:
                text = f"When it asked for gradient {asked}, {left} buckets had left, and not"
                raise Wrong("late", f"{text} {buckets[asked - 1]}.")
            asked += 1
        elif call.name != "wait":
            left += 1
        elif asked < len(buckets):
            text = f"After {asked} of {len(buckets)} gradients it already waits for a message."
            raise Wrong("waits", f"{text} Meanwhile no gradient is computed.")
