"""A Script for torchrun"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes, note, own_rank
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
        for every in (1, 100, 130)
        for kills in (0, 1, 3)
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
)


@exercise(
    "one-name",
    "What does rank 0 know that the others do not? And how does another rank know that the file is "
    "there?",
    "`dist.broadcast_object_list` sends a list with the name. A rank has it only when rank 0 has "
    "come to that call: what should rank 0 have done before?",
)
def one_name_for_all(begin, g):
    """begin(choose, write, read): on every rank what it has read, from the file of rank 0."""
    k, number = 3, int(g.integers(1000))
    with tempfile.TemporaryDirectory() as folder:
        ranks = in_processes(partial(_begin, begin, folder, number), [[] for _ in range(k)])
        written = sorted(Path(folder).glob("run-0-*"))  # several, if rank 0 chooses again
        text = written[0].read_text(encoding="utf-8") if written else ""
    names = [[call.name for call in calls] for calls in ranks.calls]
    for what, reason, words in (
        ("choose", "own-name", "chooses a name, and no other rank knows that one"),
        ("write", "all-write", "writes a file; one writer is enough"),
    ):
        for rank in range(1, k):
            if what in names[rank]:
                raise Wrong(reason, f"Rank {rank} {words}.")
        if names[0].count(what) != 1:
            text = f"Rank 0 calls `{what}` {names[0].count(what)} times; it should do so once."
            raise Wrong("once", text)
    for rank in range(k):
        if "read" not in names[rank]:
            text = f"Rank {rank} has not read the file: what is in it need not be sent."
            raise Wrong("not-read", text)
        if rank and _meetings(names[rank], "read") <= _meetings(names[0], "write"):
            text = (
                f"Nothing tells rank {rank} that the file is there: it may read before rank 0 has"
            )
            raise Wrong("early", f"{text} written.")
    for rank, answer in enumerate(ranks.results):
        if not text or answer != text:
            raise Wrong("value", f"Rank {rank} does not return what is in the file of rank 0.")
    return "Rank 0 has chosen and written, once, and all ranks have read the same file after that."


def _begin(begin, folder, number):
    """In a rank: the functions that it gets note that they are called."""
    rank, names = own_rank(), []

    def choose():
        note("choose")
        names.append(f"run-{rank}-{number}-{len(names)}")
        return names[-1]

    def write(name):
        note("write")
        Path(folder, name).write_text(f"settings of {name}", encoding="utf-8")

    def read(name):
        note("read")
        path = Path(folder, str(name))
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    return begin(choose, write, read)


def _meetings(names, until):
    """In how many collectives a rank has been when it does something for the first time."""
    own = ("choose", "write", "read", "wait")
    return sum(name not in own for name in names[: names.index(until)])
