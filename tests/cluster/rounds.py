"""Trainings that are harmed again and again, and what each harm has cost: a row of the record."""

import random
import time

import torch
from elastic_run import NUM_TRAIN, Training, seen, undisturbed, weights

from d2lmgpu.course.breaking.harms import (
    cut,
    fill_disk,
    free_disk,
    heal,
    kill_host,
    kill_worker,
)

SAVE_EVERY = 20


def die_in(place):
    """A rank dies in its next ``checkpoint`` or ``allreduce``."""

    def harm(training):
        (training.folder / place).touch()
        training.until(lambda: not (training.folder / place).exists())

    return harm


def kill_meeting_host(training):
    """The host of rank 0, at whose address all ranks meet."""
    kill_host(training, rank=0)


def kill_launcher(training):
    """SIGKILL, and the store with it; and the same command again."""
    training.kill()
    left = training.left()
    assert left == [], left
    training.start()


def end_and_start(training):
    """SIGTERM, as before a time limit; and the same command again."""
    training.process.terminate()
    training.process.wait(60)
    assert "goes on from its checkpoint" in training.words()
    left = training.left()
    assert left == [], left
    training.start()


def fill_and_free(training):
    """Seconds between the two updates around a checkpoint that could not be saved."""
    fill_disk(training)
    assert sorted(training.checkpoints.glob("step-*.safetensors")), "the last one has gone"
    failed = training.lines("not saved")[0]["time"]
    free_disk(training)
    return training.after(failed) - failed


SAME_RANKS = {
    "worker killed": kill_worker,
    "killed in an allreduce": die_in("allreduce"),
    "killed in a checkpoint": die_in("checkpoint"),
    "launcher killed, started again": kill_launcher,
    "SIGTERM, started again": end_and_start,
}
OTHER_RANKS = {
    "link cut": (cut, 2),
    "link healed": (heal, 3),
    "host killed": (kill_host, 2),
    "host of rank 0 killed": (kill_meeting_host, 1),
}


def cheap(rows):
    """Whether no harm has cost more than the updates since the last checkpoint."""
    return all(row["repeated"] <= SAVE_EVERY for row in rows)


class Round:
    """A training on three hosts, harmed at moments drawn with ``seed``; without one, at once."""

    def __init__(self, cluster, folder, epochs, seed, *options, waits_for_all=False):
        self.epochs, self.folder = epochs, folder
        self.options = [f"--epochs={epochs}", f"--save-every={SAVE_EVERY}", *options]
        self.training = Training(cluster, folder, *self.options, waits_for_all=waits_for_all)
        self.chance, self.seed = random.Random(seed), seed
        self.rows = []

    def harm(self, name, harm, ranks):
        if self.seed is not None:
            time.sleep(2 * self.chance.random())
        costs = self.training.goes_on(lambda: harm(self.training), ranks)
        self.rows.append({"harm": name} | costs)
        print(self.rows[-1], flush=True)

    def end(self):
        """Wait for the end: each image came once an epoch, nothing is left."""
        self.training.ended()
        left = self.training.left()
        assert left == [], left
        images_of = seen(self.training.lines())
        assert sorted(images_of) == list(range(self.epochs))
        assert all(sorted(images) == list(range(NUM_TRAIN)) for images in images_of.values())

    def apart(self, num_ranks):
        """How far the weights are from those of a run that nothing happened to."""
        expected = undisturbed(self.folder, num_ranks, *self.options)
        ended = weights(self.training.checkpoints)
        if torch.equal(ended, expected):
            return 0.0
        return ((ended - expected).norm() / expected.norm()).item()

    def outcome(self, num_ranks):
        """What it has cost, the distance of the end weights, and when each process trained."""
        return {"rows": self.rows, "apart": self.apart(num_ranks), "lives": self.training.lives()}


def same_ranks(cluster, folder, seed=None, names=SAME_RANKS):
    """What the harms cost after which the same number of ranks trains."""
    round_ = Round(
        cluster, folder, 20 if seed is None else 70, seed, "--dropout=0.2", waits_for_all=True
    )
    with round_.training as training:
        training.until(lambda: training.lines("saved"))
        begun = len(training.lines("begins"))
        seconds = fill_and_free(training)
        assert len(training.lines("begins")) == begun == 3, "a full disk has stopped it"
        round_.rows.append({"harm": "disk full", "seconds": seconds, "repeated": 0, "ranks": 3})
        for name in names:
            round_.harm(name, SAME_RANKS[name], 3)
        round_.end()
    return round_.outcome(3)


def other_ranks(cluster, folder, seed):
    """What the harms cost after which fewer or more ranks train."""
    round_ = Round(cluster, folder, 140, seed)
    with round_.training as training:
        training.until(lambda: training.lines("saved"))
        for name, (harm, ranks) in OTHER_RANKS.items():
            round_.harm(name, harm, ranks)
        round_.end()
    return round_.outcome(1)
