"""Exercises on which device gets which images."""

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong, array, exercise
from d2lmgpu.machine.checks import is_whole


@exercise(
    "split",
    "Write down the exact share of every device first. It need not be a whole number.",
    "Cut at the *cumulated* shares, rounded: the last cut is then always the number of images.",
)
def shares(split, g):
    """split(n, weights): how many of n images each device gets."""
    for k in (1, 2, 3, 7):
        for n in (0, 1, 5, 256):
            weights = g.integers(1, 9, k).astype(float)
            weights[0] *= g.choice([1, 10])
            sizes = split(n, weights.tolist())
            shown = f"{n} images, weights {weights.astype(int).tolist()}"
            found = array(sizes, "The list of sizes", (k,))
            if not all(is_whole(int(size)) and size == int(size) for size in found):
                raise Wrong("whole", f"{shown}: {list(sizes)} are not all whole numbers from 0 up.")
            if found.sum() != n:
                raise Wrong("sum", f"{shown}: you hand out {found.sum():.0f} images.")
            off = np.abs(found - n * weights / weights.sum()).max()
            if off >= 1 + 1e-9:
                raise Wrong("share", f"{shown}: one device is {off:.1f} images off its share.")
    return "Every image is handed out once, and no device is a whole image off its share."


@exercise("split")
def idle(split, g):
    n = int(g.integers(5, 50))
    sizes = list(split(n, [1, 0, 2]))
    if sizes[1] != 0:
        raise Wrong(
            "zero", f"{n} images, weights [1, 0, 2]: the device of weight 0 got {sizes[1]}."
        )
    return "A device of weight 0 gets nothing."


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
            if abs(found - np.concatenate(correct).mean()) < 1e-9 and twice:
                raise Wrong("duplicates", f"{text} Some images count twice.")
            if abs(found - np.mean([np.mean(of) for of in correct])) < 1e-9:
                raise Wrong("mean-of-means", f"{text} Every device counts the same.")
            raise Wrong("value", text)
    return "Every image counts once, also where the sampler had to repeat some."
