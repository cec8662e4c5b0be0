"""A Night That Nobody Watches"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.processes import in_processes, note, own_rank
from d2lmgpu.course.exercises.registry import Wrong, exercise


@exercise(
    "newest",
    "Sort `epoch-9.pt` and `epoch-10.pt` as texts. Which is last?",
    "From the newest to the oldest, the first that is whole. After the loop two cases are left: "
    "there were none, or all are damaged.",
)
def the_newest_that_is_whole(newest, g) -> str:
    """newest(names, is_whole): the name of the newest checkpoint that is whole."""
    for _ in range(3):
        epochs = [int(g.integers(2, 9)), 9, int(g.integers(10, 99)), int(g.integers(100, 999))]
        by_age = [f"epoch-{epoch}.pt" for epoch in reversed(epochs)]
        for num_damaged in range(len(by_age) + 1):
            _falls_back(newest, g.permutation(by_age).tolist(), by_age, num_damaged)
    _falls_back(newest, [], [], 0)
    return "It takes the newest that is whole, and begins anew only where nothing was trained."


def _falls_back(newest, names, by_age, num_damaged):
    """One folder, whose newest checkpoints are damaged."""
    were_read = []

    def is_whole(name):
        were_read.append(name)
        return by_age.index(name) >= num_damaged

    try:
        answer = newest(names, is_whole)
    except SystemExit:
        answer = SystemExit
    folder = f"Of {', '.join(names) or 'no checkpoint'}, {num_damaged or 'none'} damaged"
    whole = by_age[num_damaged:]
    if not names and answer is not None:
        raise Wrong("first-run", "There is no checkpoint yet: this is the first run, and no error.")
    if names and not whole and answer is None:
        raise Wrong("begins-anew", f"{folder}: it begins anew, and what was trained is lost.")
    if answer in by_age[:num_damaged]:
        raise Wrong("damaged", f"{folder}: {answer} is damaged.")
    if whole and answer == max(whole) != whole[0]:
        raise Wrong("text", f"{folder}: {answer} is the last of the texts, not of the numbers.")
    if names and answer != (whole[0] if whole else SystemExit):
        shown = "SystemExit" if answer is SystemExit else repr(answer)
        raise Wrong("value", f"{folder}: the answer is {shown}.")
    if whole and any(by_age.index(name) > num_damaged for name in were_read):
        raise Wrong("reads", f"{folder}: it has read some that are older than the one it returns.")


def life_after_life(total, every, kills) -> int:
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
def one_name_for_all(begin, g) -> str:
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
