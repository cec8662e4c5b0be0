"""A GPT to Take Apart"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, distance, exercise


def one_token_at_a_time(q, k, v, heads, own_scale=True, future=False) -> np.ndarray:
    """Attention by its definition: for each head and each token a mean of the values so far."""
    tokens, width = q.shape
    part = width // heads
    output = np.zeros_like(v)
    for head in range(heads):
        these = slice(head * part, (head + 1) * part)
        for token in range(tokens):
            length = tokens if future else token + 1
            scores = np.array([q[token, these] @ k[j, these] for j in range(length)])
            weights = np.exp(scores / np.sqrt(part if own_scale else width))
            output[token, these] = weights @ v[:length, these] / weights.sum()
    return output


@exercise(
    "attention",
    "Take one head: which columns of q, k and v does it have? What may token 0 look at?",
    "Set the products with later tokens to minus infinity before the softmax, which is over the "
    "tokens that are looked at.",
)
def heads_and_the_past(attention, g) -> str:
    """attention(q, k, v, heads): an array of the shape of v."""
    for tokens, width, heads in ((1, 4, 2), (5, 6, 1), (6, 8, 4), (4, 6, 3)):
        q, k, v = (g.normal(size=(tokens, width)) * 2 for _ in range(3))
        answer = array(attention(q.copy(), k.copy(), v.copy(), heads), "The output", v.shape)
        off = distance(answer, one_token_at_a_time(q, k, v, heads))
        if off > 1e-9:
            text = (
                f"{tokens} tokens of {width} numbers, {heads} heads: the output is {off:.1%} off."
            )
            for reason, words, options in (
                ("future", "Tokens look at later ones.", {"future": True}),
                ("scale", "The products are too small.", {"own_scale": False}),
            ):
                if distance(answer, one_token_at_a_time(q, k, v, heads, **options)) < 1e-9:
                    raise Wrong(reason, f"{text} {words}")
            if heads > 1 and distance(answer, one_token_at_a_time(q, k, v, 1)) < 1e-9:
                raise Wrong("heads", f"{text} It is that of one head.")
            raise Wrong("value", text)
    return "The output is right for one head and for several, and no token looks ahead."


def counted(width, blocks, symbols, tokens, biases=1, norms=1, heads=1) -> int:
    """Tensor by tensor: the sizes of all that the network has."""
    wide = 4 * width
    layers = [(width, width)] * 4 + [(width, wide), (wide, width)]
    block = sum(rows * columns + biases * columns for rows, columns in layers)
    block += norms * 2 * (2 * width)
    ends = symbols * width * (1 + heads) + tokens * width + norms * 2 * width
    return blocks * block + ends


formula(
    "gpt-parameters",
    "How many numbers has one block? Matrices first, then biases, then norms.",
    "A block has twelve squares of the width and thirteen times the width beside them.",
    cases=lambda g: [
        tuple(
            int(n) for n in (64 * g.integers(1, 9), g.integers(1, 9), g.integers(10, 500), tokens)
        )
        for tokens in (8, 64, 1024)
    ],
    right=lambda width, blocks, symbols, tokens: counted(width, blocks, symbols, tokens),
    slips={
        "biases": (
            lambda width, blocks, symbols, tokens: counted(
                width, blocks, symbols, tokens, biases=0
            ),
            "The layers of a block have biases.",
        ),
        "norms": (
            lambda width, blocks, symbols, tokens: counted(width, blocks, symbols, tokens, norms=0),
            "The norms have parameters, too.",
        ),
        "tied": (
            lambda width, blocks, symbols, tokens: counted(width, blocks, symbols, tokens, heads=0),
            "Head and embedding are two matrices.",
        ),
        "squares": (
            lambda width, blocks, symbols, tokens: 12 * blocks * width * width,
            "That is the usual estimate: the matrices of the blocks.",
        ),
    },
    what="The number of parameters",
    says="The parameters are right, from the embedding to the head.",
)


def utilisation(parameters, blocks, width, tokens, rate, peak, passes=3, attention=True) -> float:
    """A pass multiplies and adds once for each parameter, and twice the width for each token."""
    pairs = parameters + attention * 2 * blocks * tokens * width
    return 2 * pairs * passes * rate / peak


formula(
    "mfu",
    "How many operations does the forward pass take for one token and one parameter? And the "
    "backward pass?",
    "A token's query meets the keys of all tokens, then the weights meet all values: two products "
    "of tokens times width in each block, forward once and backward twice.",
    cases=lambda g: [
        (
            int(g.integers(10**8, 10**10)),
            int(g.integers(2, 60)),
            1024 * int(g.integers(1, 8)),
            tokens,
            float(g.integers(10**3, 10**5)),
            1e12 * float(g.integers(50, 1000)),
        )
        for tokens in (512, 4096, 131072)
    ],
    right=lambda parameters, blocks, width, tokens, rate, peak: utilisation(
        parameters, blocks, width, tokens, rate, peak
    ),
    slips={
        "attention": (
            lambda *case: utilisation(*case, attention=False),
            "The products of attention are missing.",
        ),
        "forward": (
            lambda *case: utilisation(*case, passes=1),
            "The backward pass is missing.",
        ),
        "backward": (
            lambda *case: utilisation(*case, passes=2),
            "The backward pass has two products for each one forward.",
        ),
    },
    what="The utilisation",
    says="The utilisation is right, for short and for long sequences.",
)
