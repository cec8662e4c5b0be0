"""Tensor Parallelism"""

from functools import partial

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes
from d2lmgpu.course.exercises.ranks import rings
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise

NAMES = ("Y", "dX", "dA", "dB")


def on_one_device(X, A, B, dY) -> tuple:
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
    "Each rank's product with its rows of B is one term of the output. Of what is each rank's "
    "gradient of X one term?",
    "Two sums over the ranks are enough: of the output, and of the gradient of X. The gradients "
    "of A and B need none.",
)
def like_the_whole_mlp(mlp, g) -> str:
    """mlp(X, A, B, dY): (Y, dX, dA, dB), two of them whole, two of this rank's part."""
    k = 4
    rows, width, units = 3, 4, 4 * k
    X, dY = g.normal(size=(rows, width)), g.normal(size=(rows, width))
    A, B = g.normal(size=(width, units)), g.normal(size=(units, width))
    right = on_one_device(X, A, B, dY)
    parts = [*zip(np.split(A, k, axis=1), np.split(B, k, axis=0))]
    ranks = in_processes(mlp, [[X.copy(), a.copy(), b.copy(), dY.copy()] for a, b in parts])
    if not all(isinstance(result, list) and len(result) == 4 for result in ranks.results):
        raise Wrong("type", "`mlp` has to return (Y, dX, dA, dB).")
    for rank, results in enumerate(ranks.results):
        expected = (
            *right[:2],
            np.split(right[2], k, axis=1)[rank],
            np.split(right[3], k, axis=0)[rank],
        )
        terms = on_one_device(X, *parts[rank], dY)
        for name, result, value, term in zip(NAMES, results, expected, terms, strict=True):
            answer = array(result, name, value.shape)
            off = distance(answer, value)
            if off > 1e-9:
                text = f"On {k} ranks {name} of rank {rank} is {off:.1%} off."
                if distance(answer, term) < 1e-9:
                    text = f"{text} It is the rank's own term of it."
                    raise Wrong("g" if name == "Y" else "f", text)
                raise Wrong("value", text)
    _are_enough(ranks, X.size + dY.size)
    return "Output and gradients are those of one device, with two sums over the ranks."


def _are_enough(ranks, numbers):
    """Wrong if a rank hands over more numbers than that to its sums and messages."""
    most = max(sum(call.numbers for call in calls) for calls in ranks.sent)
    if most > numbers:
        text = f"On {len(ranks.calls)} ranks one sends or sums {most} numbers;"
        raise Wrong("bytes", f"{text} {numbers} are enough.")


@exercise(
    "row-bias",
    "Let X and W be zero. What should come out, and what does?",
    "The bias belongs to the sum, not to its terms.",
)
def one_bias(layer, g) -> str:
    """layer(X, W, b): the output of the layer whose rows the ranks have."""
    k = 3
    X, W, b = g.normal(size=(3, 2 * k)), g.normal(size=(2 * k, 5)), g.normal(size=5)
    right = np.einsum("ij,jk->ik", X, W) + b
    parts = zip(np.split(X, k, axis=1), np.split(W, k))
    ranks = in_processes(layer, [[x.copy(), w.copy(), b.copy()] for x, w in parts])
    for rank, result in enumerate(ranks.results):
        answer = array(result, "The output", right.shape)
        off = distance(answer, right)
        if off > 1e-9:
            reason = "bias" if np.allclose(answer - right, (answer - right)[0]) else "sum"
            text = f"On {k} ranks the output of rank {rank} is {off:.1%} off."
            if reason == "bias":
                text += " In every row it is off by the same."
            raise Wrong(reason, text)
    return "The output is that of one device."


@exercise(
    "norm-gain",
    "Which tokens has a rank seen? Whose loss does the gain change?",
    "Add up over the ranks what each has found for its own tokens.",
)
def of_all_tokens(gain_gradient, g) -> str:
    """gain_gradient(X, dY): the gradient for the tokens of all ranks."""
    k = 3
    X, dY = g.normal(size=(3 * k, 5)), g.normal(size=(3 * k, 5))
    right = np.einsum("ij,ij->j", X, dY)
    parts = zip(np.split(X, k), np.split(dY, k))
    ranks = in_processes(gain_gradient, [[x.copy(), dy.copy()] for x, dy in parts])
    gradients = [array(result, "The gradient", right.shape) for result in ranks.results]
    for rank, gradient in enumerate(gradients):
        off = distance(gradient, right)
        if off > 1e-9:
            text = f"On {k} ranks the gradient of rank {rank} is {off:.1%} off."
            if distance(gradient * k, right) < 1e-9:
                raise Wrong("mean", f"{text} The loss is a sum, not a mean.")
            tokens = slice(3 * rank, 3 * rank + 3)
            if distance(gradient, (X[tokens] * dY[tokens]).sum(axis=0)) < 1e-9:
                raise Wrong("own", f"{text} It knows of its own tokens only.")
            raise Wrong("value", text)
    _are_enough(ranks, right.size)
    return "The gradient is that of all tokens, on every rank."


@exercise(
    "target-score",
    "Which columns does this rank have? In which of them is a target that is the rank's own, and "
    "what does the rank add to the sum for all others?",
    "Subtract the rank's first symbol from `y`. Where the result is from 0 to the number of "
    "columns, look the score up; elsewhere it stays 0. Then one `dist.all_reduce`.",
)
def scores_of_the_targets(of_target, g) -> str:
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


def ring_bytes(blocks, batch, tokens, width, k, sums=4) -> int:
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


@exercise("tp-bytes")
def as_a_ring_sends_them(sent, g) -> str:
    """sent(blocks, batch, tokens, width, k), against rings in real processes."""
    k, blocks, batch, tokens, width = 4, 2, 1, 4, 8
    numbers = np.zeros(batch * tokens * width)
    ranks = in_processes(partial(rings, 4 * blocks), [[numbers.copy()] for _ in range(k)])
    counted = 2 * sum(call.numbers for call in ranks.sent[0])
    answer = array(sent(blocks, batch, tokens, width, k), "The number of bytes", ())
    if answer != counted:
        text = f"In four processes rank 0 sends {counted} bytes by its rings, and not {answer:g}."
        raise Wrong("rings", text)
    return f"In four processes rings send what your function says: {counted} bytes a rank."
