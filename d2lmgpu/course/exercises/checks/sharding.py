"""ZeRO and FSDP: Shard What Everybody Copies"""

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


@exercise(
    "zero",
    "Which numbers does the momentum of a device have to hold, if it updates only its own part?",
    "`device.reduce_scatter(gradient)` gives the sum of your part. Update momentum and weights of "
    "that part, then `device.all_gather` hands the new weights to everybody.",
)
def like_one_device(step, g):
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
            pairs, sent, *_ = together(step, k, ws, vs, [one.copy() for one in gradients], [lr] * k)
            if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
                raise Wrong("type", "`step` has to return (w, momentum).")
            ws = [array(pair[0], "w", (n,)) for pair in pairs]
            vs = [array(pair[1], "The momentum", (n // k,)) for pair in pairs]
            off = max(distance(one, alone) for one in ws)
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
            lambda parameters, k, stage: parameters * [
                16, 14 + 2 / k, 12 + 4 / k, 16 / k
            ][stage],
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
)  # fmt: skip


@exercise(
    "norm",
    "Two devices hold the parts (3, 0) and (0, 4) of a gradient. How long is the whole of it?",
    "The squares of the lengths can be added. One number from each device is enough.",
)
def one_length(clip, g):
    """clip(device, part, limit): the device's part of the gradient, clipped by its whole length."""
    for k in (1, 2, 4):
        for limit in (0.5, 1000.0):
            parts = [g.normal(size=5) * (rank + 1) for rank in range(k)]
            whole = np.concatenate(parts)
            length = np.linalg.norm(whole)
            exchange = together(clip, k, [one.copy() for one in parts], [limit] * k)
            found = np.concatenate([array(one, "A part", (5,)) for one in exchange.results])
            off = distance(found, whole * min(1, limit / length))
            if off > 1e-9:
                own = [one * min(1, limit / np.linalg.norm(one)) for one in parts]
                text = f"On {k} devices, limit {limit:g}: the gradient is {off:.1%} off."
                if distance(found, np.concatenate(own)) < 1e-9:
                    raise Wrong("own-norm", f"{text} Each device goes by the length of its part.")
                raise Wrong("value", text)
            if max(exchange.sent) > 8 * (k - 1):
                text = f"On {k} devices one sends {max(exchange.sent)} bytes: fewer are enough."
                raise Wrong("bytes", text)
    return "The whole gradient is clipped once, and one number a device was sent."
