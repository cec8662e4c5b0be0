"""Tensor Parallelism"""

import numpy as np

from d2lmgpu.course.exercises.devices import together
from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise

NAMES = ("Y", "dX", "dA", "dB")


def on_one_device(X, A, B, dY):
    """The output of the MLP, and the gradients, one hidden unit after the other."""
    Y, dX = np.zeros_like(dY), np.zeros_like(X)
    dA, dB = np.zeros_like(A), np.zeros_like(B)
    for unit in range(A.shape[1]):
        before = X @ A[:, unit]
        hidden = np.where(before > 0, before, 0)
        back = np.where(before > 0, dY @ B[unit], 0)
        Y += np.outer(hidden, B[unit])
        dX += np.outer(back, A[:, unit])
        dA[:, unit], dB[unit] = back @ X, hidden @ dY
    return Y, dX, dA, dB


@exercise(
    "f-and-g",
    "Each device's product with its rows of B is one term of the output. Of what is each device's "
    "gradient of X one term?",
    "Two sums over the devices are enough: of the output, and of the gradient of X. The gradients "
    "of A and B need none.",
)
def like_the_whole_mlp(mlp, g):
    """mlp(device, X, A, B, dY): (Y, dX, dA, dB), two of them whole, two of this device's part."""
    for k in (1, 2, 4):
        rows, width, units = 3, 4, 4 * k
        X, dY = g.normal(size=(rows, width)), g.normal(size=(rows, width))
        A, B = g.normal(size=(width, units)), g.normal(size=(units, width))
        right = on_one_device(X, A, B, dY)
        parts = np.split(A, k, axis=1), np.split(B, k, axis=0)
        exchange = together(
            mlp, k, [X.copy() for _ in range(k)], *parts, [dY.copy() for _ in range(k)]
        )
        if not all(
            isinstance(result, (tuple, list)) and len(result) == 4 for result in exchange.results
        ):
            raise Wrong("type", "`mlp` has to return (Y, dX, dA, dB).")
        for rank, results in enumerate(exchange.results):
            expected = (
                *right[:2],
                np.split(right[2], k, axis=1)[rank],
                np.split(right[3], k, axis=0)[rank],
            )
            for name, result, value in zip(NAMES, results, expected, strict=True):
                off = distance(array(result, name, value.shape), value)
                if off > 1e-9:
                    reason = {"Y": "g", "dX": "f"}.get(name, "value")
                    text = f"On {k} devices {name} of device {rank} is {off:.1%} off."
                    raise Wrong(reason if k > 1 else "value", text)
        allowed = 2 * (k - 1) * X.nbytes
        if max(exchange.sent) > allowed:
            text = f"On {k} devices one sends {max(exchange.sent)} bytes; {allowed} are enough."
            raise Wrong("bytes", text)
    return "Output and gradients are those of one device, with two sums over the devices."


@exercise(
    "row-bias",
    "Let X and W be zero. What should come out, and what does?",
    "The bias belongs to the sum, not to its terms.",
)
def one_bias(layer, g):
    """layer(device, X, W, b): the output of the layer whose rows the devices have."""
    for k in (1, 2, 4):
        X, W, b = g.normal(size=(3, 2 * k)), g.normal(size=(2 * k, 5)), g.normal(size=5)
        right = np.einsum("ij,jk->ik", X, W) + b
        exchange = together(
            layer, k, np.split(X, k, axis=1), np.split(W, k), [b.copy() for _ in range(k)]
        )
        for rank, result in enumerate(exchange.results):
            answer = array(result, "The output", right.shape)
            off = distance(answer, right)
            if off > 1e-9:
                reason = "bias" if np.allclose(answer - right, (answer - right)[0]) else "sum"
                text = f"On {k} devices the output of device {rank} is {off:.1%} off."
                if reason == "bias":
                    text += " In every row it is off by the same."
                raise Wrong(reason, text)
    return "The output is that of one device."


@exercise(
    "norm-gain",
    "Which tokens has a device seen? Whose loss does the gain change?",
    "Add up over the devices what each has found for its own tokens.",
)
def of_all_tokens(gain_gradient, g):
    """gain_gradient(device, X, dY): the gradient for the tokens of all devices."""
    for k in (1, 2, 4):
        X, dY = g.normal(size=(3 * k, 5)), g.normal(size=(3 * k, 5))
        right = np.einsum("ij,ij->j", X, dY)
        exchange = together(gain_gradient, k, np.split(X, k), np.split(dY, k))
        gradients = [array(result, "The gradient", right.shape) for result in exchange.results]
        for rank, gradient in enumerate(gradients):
            off = distance(gradient, right)
            if off > 1e-9:
                text = f"On {k} devices the gradient of device {rank} is {off:.1%} off."
                if distance(gradient * k, right) < 1e-9:
                    raise Wrong("mean", f"{text} The loss is a sum, not a mean.")
                tokens = slice(3 * rank, 3 * rank + 3)
                if distance(gradient, (X[tokens] * dY[tokens]).sum(axis=0)) < 1e-9:
                    raise Wrong("own", f"{text} It knows of its own tokens only.")
                raise Wrong("value", text)
        if max(exchange.sent) > 2 * (k - 1) * right.nbytes:
            text = f"On {k} devices one sends {max(exchange.sent)} bytes: fewer are enough."
            raise Wrong("bytes", text)
    return "The gradient is that of all tokens, on every device."


@exercise(
    "target-score",
    "Which columns does this rank have? In which of them is a target that is the rank's own, and "
    "what does the rank add to the sum for all others?",
    "Subtract the rank's first symbol from `y`. Where the result is from 0 to the number of "
    "columns, look the score up; elsewhere it stays 0. Then one `dist.all_reduce`.",
)
def scores_of_the_targets(of_target, g):
    """of_target(scores, y): on every rank, of each token the score of its target."""
    k, symbols = 4, 20  # each symbol is a target once: the first and the last of each rank, too
    scores, y = g.normal(size=(symbols, symbols)), g.permutation(symbols)
    right = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    parts = [part.copy() for part in np.split(scores, k, axis=1)]
    width = symbols // k
    ranks = in_processes(of_target, [[part.copy(), y.copy()] for part in parts])
    for rank, result in enumerate(ranks.results):
        answer = array(result, "The scores", right.shape)
        off = distance(answer, right)
        if off > 1e-9:
            text = f"On rank {rank} the scores are {off:.1%} off."
            if distance(answer, np.where(y // width == rank, right, 0)) < 1e-9:
                raise Wrong("own", f"{text} They are those of its own symbols only.")
            if any(distance(answer, total) < 1e-9 for total in _without_mask(parts, y)):
                text += " Every rank has added a score, whose ever the target is."
                raise Wrong("mask", text)
            raise Wrong("value", text)
    most = ranks.most_numbers
    if set(ranks.messages) != {1} or most > len(y):
        text = f"The ranks sum or send {max(ranks.messages)} times; one sum is enough."
        if most > len(y):
            text = f"A rank sends {most} numbers: more than one a token."
        raise Wrong("messages", text)
    return "Each of four processes knows the scores of all targets, after one sum."


def _without_mask(parts, y):
    """The sum if every rank adds the score of some column: of the nearest, or modulo its width."""
    width = parts[0].shape[1]
    for columns in (
        lambda rank: np.clip(y - rank * width, 0, width - 1),
        lambda rank: y % width,
    ):
        yield sum(part[np.arange(len(y)), columns(rank)] for rank, part in enumerate(parts))


def ring_bytes(blocks, batch, tokens, width, k, sums=4):
    """Each sum by a ring: k - 1 times a part goes on to be added to, and k - 1 times as it is."""
    part = 2 * batch * tokens * width / k
    return sum(part for _ in range(sums * blocks) for _ in range(2 * (k - 1)))


formula(
    "tp-bytes",
    "How large is one allreduce, in bytes? How much of that does a ring send from each device?",
    "A ring's allreduce sends 2 (k − 1) / k of the data, and there are four for each block.",
    cases=lambda g: [
        (
            int(g.integers(1, 40)),
            int(g.integers(1, 9)),
            128 * int(g.integers(1, 33)),
            64 * int(g.integers(1, 65)),
            k,
        )
        for k in (1, 2, 4, 8)
    ],
    right=lambda blocks, batch, tokens, width, k: ring_bytes(blocks, batch, tokens, width, k),
    slips={
        "forward": (
            lambda *case: ring_bytes(*case, sums=2),
            "The backward pass has as many as the forward pass.",
        ),
        "payload": (
            lambda blocks, batch, tokens, width, k: 8 * blocks * batch * tokens * width,
            "That is the data of the allreduces, not what a ring sends of it.",
        ),
        "six": (
            lambda *case: ring_bytes(*case, sums=6),
            "That is a plan in which q, k and v each have an allreduce of their own.",
        ),
    },
    what="The number of bytes",
    says="The bytes are right, on one to eight devices.",
)
