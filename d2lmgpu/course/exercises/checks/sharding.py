"""ZeRO and FSDP: Shard What Everybody Copies"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise

OTHER_WEIGHTS = {  # why the weights are others than they should be, by a Wrong's reason
    "unchanged": "They are what they were before.",
    "sum": "The ranks' gradients are added, and not averaged.",
    "own": "Each part goes by its owner's gradient alone.",
    "not-gathered": "Its own part is right.",
    "momentum": "The velocity of before is not in them.",
    "value": "",
}


@exercise(
    "zero",
    "Which numbers does the momentum of a device have to hold, if it updates only its own part?",
    "`device.reduce_scatter(gradient)` gives the sum of your part. Update momentum and weights of "
    "that part, then `device.all_gather` hands the new weights to everybody.",
)
def like_one_device(step, g) -> str:
    """step(device, w, momentum, gradient, lr): the new (w, momentum of this part)."""
    for k in (1, 2, 4):
        n = 3 * k
        w, lr = g.normal(size=n), float(g.uniform(0.01, 1))
        alone, v = w.copy(), np.zeros(n)
        ws, vs = [w.copy() for _ in range(k)], [np.zeros(n // k) for _ in range(k)]
        for number in (1, 2, 3):
            gradients = [g.normal(size=n) for _ in range(k)]
            v = 0.9 * v + np.mean(gradients, axis=0)
            alone = alone - lr * v
            pairs, sent, *_ = together(
                step, k, ws, vs, [gradient.copy() for gradient in gradients], [lr] * k
            )
            if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
                raise Wrong("type", "`step` has to return (w, momentum).")
            ws = [array(pair[0], "w", (n,)) for pair in pairs]
            vs = [array(pair[1], "The momentum", (n // k,)) for pair in pairs]
            off = max(distance(w, alone) for w in ws)
            if off > 1e-9:
                after = "the first update" if number == 1 else f"{number} updates"
                reason = "momentum" if number > 1 else "value"
                text = f"On {k} devices the weights are {off:.1%} off after {after}."
                raise Wrong(reason, text)
            allowed = 2 * (k - 1) / k * 8 * n
            if max(sent) > allowed * (1 + 1e-9):
                text = f"A step sends {max(sent)} bytes; {allowed:.0f} are enough."
                raise Wrong("bytes", text)
    return "Three updates are those of one device, and each device keeps 1/k of the momentum."


SHARDED_FROM = ((2, 3), (2, 2), (12, 1))  # bytes a parameter, and the stage that shards them

formula(
    "held",
    "Write down the 16 bytes of a parameter: which are weights, which gradients, and which belong "
    "to the optimiser?",
    "Stage 1 divides the optimiser's 12 bytes by k, stage 2 the gradients as well, stage 3 all.",
    cases=lambda g: [
        (int(g.integers(10**6, 10**9)), k, stage) for k in (1, 8, 64) for stage in range(4)
    ],
    right=lambda parameters, k, stage: sum(
        size * parameters / (k if stage >= first else 1) for size, first in SHARDED_FROM
    ),
    slips={
        "order": (
            lambda parameters, k, stage: parameters * [16, 14 + 2 / k, 12 + 4 / k, 16 / k][stage],
            "The largest part is sharded first.",
        ),
        "all": (
            lambda parameters, k, stage: 16 * parameters / (k if stage else 1),
            "Stages 1 and 2 leave something whole.",
        ),
        "state": (
            lambda parameters, k, stage: parameters * [8, 4 + 4 / k, 2 + 6 / k, 8 / k][stage],
            "The optimiser keeps the weights in 32 bits, too.",
        ),
    },
    what="The number of bytes",
    says="The bytes are right for all stages, on one to sixty-four devices.",
)


@exercise(
    "norm",
    "Two devices hold the parts (3, 0) and (0, 4) of a gradient. How long is the whole of it?",
    "The squares of the lengths can be added. One number from each device is enough.",
)
def one_length(clip, g) -> str:
    """clip(device, part, limit): the device's part of the gradient, clipped by its whole length."""
    for k in (1, 2, 4):
        for limit in (0.5, 1000.0):
            parts = [g.normal(size=5) * (rank + 1) for rank in range(k)]
            whole = np.concatenate(parts)
            length = np.linalg.norm(whole)
            exchange = together(clip, k, [part.copy() for part in parts], [limit] * k)
            answer = np.concatenate([array(result, "A part", (5,)) for result in exchange.results])
            off = distance(answer, whole * min(1, limit / length))
            if off > 1e-9:
                own = [part * min(1, limit / np.linalg.norm(part)) for part in parts]
                text = f"On {k} devices, limit {limit:g}: the gradient is {off:.1%} off."
                if distance(answer, np.concatenate(own)) < 1e-9:
                    raise Wrong("own-norm", f"{text} Each device goes by the length of its part.")
                raise Wrong("value", text)
            if max(exchange.sent) > 8 * (k - 1):
                text = f"On {k} devices one sends {max(exchange.sent)} bytes: fewer are enough."
                raise Wrong("bytes", text)
    return "The whole gradient is clipped once, and one number a device was sent."


@exercise(
    "zero-calls",
    "How many numbers have the parts of all ranks together, and how many has `w`? Lengthen the "
    "gradient by zeros first.",
    "`dist.reduce_scatter_tensor(mine, lengthened)` takes a tensor k times as long as `mine`. "
    "Update the velocity and this rank's part of `w`, then `dist.all_gather_into_tensor`. The "
    "first `len(w)` numbers of that are the new `w`.",
)
def like_one_process(step, g) -> str:
    """step(w, gradient, velocity, lr): w and this part of the velocity change in place."""
    k, size, updates = 3, 3, 2
    n = int(g.integers(7, 9))  # of the last part one number or two are none
    w, lr = g.normal(size=n), float(g.uniform(0.1, 1))
    gradients = g.normal(size=(k, updates, n))
    inputs = [[w.copy(), np.zeros(size), *gradients[rank].copy()] for rank in range(k)]
    ranks = in_processes(partial(_updates, step, lr), inputs)
    alone, velocity = w, np.zeros(n)
    for update in range(updates):
        before, mean = alone, gradients[:, update].mean(axis=0)
        velocity = 0.9 * velocity + mean
        alone = before - lr * velocity
        after = "the first update" if update == 0 else f"{update + 1} updates"
        for rank in range(k):
            answer, momentum = ranks.results[rank][update]
            part = slice(rank * size, (rank + 1) * size)
            off = distance(answer, alone)
            if off > 1e-9:
                own = np.concatenate([gradients[i, update, i * size :][:size] for i in range(k)])
                text = f"On rank {rank} the weights are {off:.1%} off after {after}."
                as_if = {
                    "unchanged": (answer, before),
                    "sum": (answer, before - lr * k * mean),
                    "own": (answer, before - lr * own),
                    "not-gathered": (answer[part], alone[part]),
                    "momentum": (answer, before - lr * mean),
                }
                near = (reason for reason, both in as_if.items() if distance(*both) < 1e-9)
                reason = next(near, "value")
                raise Wrong(reason, f"{text} {OTHER_WEIGHTS[reason]}".rstrip())
            if distance(momentum[: len(velocity[part])], velocity[part]) > 1e-9:
                text = f"The weights are right, and the velocity on rank {rank} is not."
                raise Wrong("velocity", text)
    _sends_little(ranks.sent[0], size, updates)
    return "Three processes make the updates of one, with two calls each."


def _sends_little(sent, size, updates):
    """Wrong if a rank calls more than it has to, or hands over more than its part."""
    calls = f"In {updates} updates a rank calls {', '.join(call.name for call in sent)}."
    if any(call.name.startswith("all_reduce") for call in sent):
        text = f"The weights are right. {calls} An allreduce gives a rank all sums; it needs those "
        raise Wrong("allreduce", f"{text}of its part, which are half the bytes.")
    if len(sent) > 2 * updates:
        raise Wrong("messages", f"The weights are right. {calls} Two calls an update are enough.")
    if any(call.name.startswith("all_gather") and call.numbers > size for call in sent):
        text = "The weights are right, and a rank hands more to the all-gather than its part."
        raise Wrong("whole", text)


def _updates(step, lr, w, velocity, *gradients):
    """In a rank: weights and velocity after each update."""
    held = []
    for gradient in gradients:
        step(w, gradient, velocity, lr)
        held.append((w.clone(), velocity.clone()))
    return held
