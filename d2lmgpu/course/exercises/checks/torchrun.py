"""A Script for torchrun"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "evaluate",
    "Print the indices that the ranks got. Which of them appear twice, and why?",
    "The sampler fills up with images from the start, so that all ranks have equally many. An "
    "image must count once: go by its index.",
)
def every_image_once(evaluate, g) -> str:
    """evaluate(indices, correct, n): the accuracy over n images, each counted once."""
    for n, k in ((8, 2), (7, 2), (10, 4), (3, 4)):
        right = g.integers(0, 2, n)
        right[0], right[-1] = 1, 0  # what is there twice is never what is there once
        order = g.permutation(n)
        padded = np.resize(order, k * -(-n // k))
        indices = [padded[rank::k].tolist() for rank in range(k)]
        correct = [right[list(of)].astype(bool).tolist() for of in indices]
        answer = array(evaluate(indices, correct, n), "The accuracy", ())
        off = abs(float(answer) - right.mean())
        if off > 1e-9:
            twice = len(padded) - n
            text = f"{n} images on {k} devices: your accuracy is {off:.3f} off."
            everything = np.concatenate(correct)
            if twice and np.isclose(answer, [everything.mean(), everything.sum() / n]).any():
                raise Wrong("duplicates", f"{text} Some images count twice.")
            if abs(answer - np.mean([np.mean(of) for of in correct])) < 1e-9:
                raise Wrong("mean-of-means", f"{text} Every device counts the same.")
            raise Wrong("value", text)
    return "Every image counts once, also where the sampler had to repeat some."


@exercise(
    "sampler",
    "Print the order of ten images in epoch 0 and in epoch 1. What is wrong with it?",
    "All ranks must shuffle alike, and every epoch in another way: make the generator from two "
    "numbers that all ranks know.",
)
def orders(sampler, g) -> str:
    """sampler(n, k, rank, epoch, seed): the images of a rank, in their order."""
    n, seed = int(g.integers(30, 60)), int(g.integers(0, 99))
    for k in (1, 2, 3):
        first = [np.asarray(sampler(n, k, rank, 0, seed)).tolist() for rank in range(k)]
        again = [np.asarray(sampler(n, k, rank, 0, seed)).tolist() for rank in range(k)]
        if first != again:
            raise Wrong("chance", "The same epoch and seed, asked twice, give two orders.")
        dealt = [image for part in first for image in part]
        if len(set(dealt)) < len(dealt):
            raise Wrong("overlap", f"On {k} ranks, one image is dealt to two of them.")
        if sorted(dealt) != list(range(n)):
            raise Wrong("missing", f"On {k} ranks, {n - len(dealt)} of {n} images are left out.")
        if max(map(len, first)) - min(map(len, first)) > 1:
            raise Wrong("uneven", f"On {k} ranks, the parts are {list(map(len, first))} long.")
        others = [np.asarray(sampler(n, k, 0, epoch, seed)).tolist() for epoch in (1, 2)]
        if first[0] in others or others[0] == others[1]:
            raise Wrong("epoch", "Two epochs have the same order.")
        if np.asarray(sampler(n, k, 0, 0, seed + 1)).tolist() == first[0]:
            raise Wrong("seed", "Another seed has the same order.")
    return "Every epoch deals all images once, in an order of its own."


def never_dealt(n, k, batch) -> int:
    """By dealing them out, and counting whole batches."""
    ranks = [list(range(n // k * k))[rank::k] for rank in range(k)]
    share = batch // k
    seen = {image for of in ranks for image in of[: len(of) // share * share]}
    return n - len(seen)


formula(
    "left-out",
    "Deal 23 images to two ranks whose loaders make batches of 4. Which are left out, by whom?",
    "The sampler leaves out what is no whole row of ranks, the loaders what is no whole batch. All "
    "ranks drop equally many.",
    cases=lambda g: (
        [
            (int(g.integers(batch, 9 * batch)), k, batch)
            for k in (1, 2, 3, 8)
            for batch in (4 * k, 7 * k)
        ]
        + [(23, 2, 8), (64, 4, 16)]
    ),
    right=never_dealt,
    slips={
        "sampler": (lambda n, k, batch: n % k, "That is what the sampler leaves out alone."),
        "one-rank": (
            lambda n, k, batch: n // k % (batch // k),
            "That is what one rank's loader drops. How many ranks are there, and what of the "
            "sampler?",
        ),
    },
    what="The number of images",
    says="So many images are left out, and with another order they are others.",
)
