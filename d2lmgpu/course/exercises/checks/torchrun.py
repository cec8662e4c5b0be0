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
def every_image_once(evaluate, g):
    """evaluate(indices, correct, n): the accuracy over n images, each counted once."""
    for n, k in ((8, 2), (7, 2), (10, 4), (3, 4)):
        right = g.integers(0, 2, n)
        right[0], right[-1] = 1, 0  # what is there twice is never what is there once
        order = g.permutation(n)
        padded = np.resize(order, k * -(-n // k))
        indices = [padded[rank::k].tolist() for rank in range(k)]
        correct = [right[list(of)].astype(bool).tolist() for of in indices]
        found = array(evaluate(indices, correct, n), "The accuracy", ())
        off = abs(float(found) - right.mean())
        if off > 1e-9:
            twice = len(padded) - n
            text = f"{n} images on {k} devices: your accuracy is {off:.3f} off."
            everything = np.concatenate(correct)
            if twice and np.isclose(found, [everything.mean(), everything.sum() / n]).any():
                raise Wrong("duplicates", f"{text} Some images count twice.")
            if abs(found - np.mean([np.mean(of) for of in correct])) < 1e-9:
                raise Wrong("mean-of-means", f"{text} Every device counts the same.")
            raise Wrong("value", text)
    return "Every image counts once, also where the sampler had to repeat some."


@exercise(
    "sampler",
    "Print the order of ten images in epoch 0 and in epoch 1. What is wrong with it?",
    "All ranks must shuffle alike, and every epoch in another way: make the generator from two "
    "numbers that all ranks know.",
)
def orders(sampler, g):
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


def life_after_life(total, every, kills):
    """By doing the updates, one after the other."""
    kills, done, saved, computed = list(kills), 0, 0, 0
    while done < total:
        done, computed = done + 1, computed + 1
        if done % every == 0:
            saved = done
        if kills and done == kills[0]:
            kills.pop(0)
            done = saved
    return computed


formula(
    "lost",
    "A job that is killed after update 250 and saves every 100: where does it go on?",
    "Each kill costs what was done since the last checkpoint, and no more.",
    cases=lambda g: [
        (1000, every, sorted(g.choice(np.arange(120, 1000), kills, replace=False).tolist()))
        for every in (1, 100, 130) for kills in (0, 1, 3)
    ],
    right=life_after_life,
    slips={
        "nothing": (lambda total, every, kills: total, "Something is lost with a kill."),
        "everything": (
            lambda total, every, kills: total + sum(kills),
            "In it nothing is ever saved.",
        ),
    },
    what="The number of updates",
    says="That many updates are computed in all.",
)  # fmt: skip
