"""Threads that stand for devices: they send and receive, and every byte is counted."""

import queue
import threading
from collections import Counter

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong

PATIENCE = 3  # seconds for which a device waits for a message


class Device:
    """One of ``k`` devices: ``rank``, ``send(array, to)`` and ``receive(source)``.

    A message is a copy, and arrives in the order of sending. ``all_gather`` and ``reduce_scatter``
    are there for exercises that may use them.
    """

    def __init__(self, rank, k, boxes, sent):
        self.rank, self.k, self._boxes, self._sent = rank, k, boxes, sent

    def send(self, array, to):
        """Send a copy of ``array`` to the device of rank ``to``; does not wait."""
        self._check(to)
        message = np.array(array, dtype=np.float64)
        self._sent[self.rank] += message.nbytes
        self._boxes[self.rank, to].put(message)

    def receive(self, source):
        """The next array that the device of rank ``source`` has sent to this one; waits for it."""
        self._check(source)
        try:
            return self._boxes[source, self.rank].get(timeout=PATIENCE)
        except queue.Empty:
            text = f"Device {self.rank} of {self.k} waits for device {source}, which sends nothing."
            raise Wrong("deadlock", text) from None

    def _check(self, rank):
        if not isinstance(rank, (int, np.integer)) or not 0 <= rank < self.k:
            raise Wrong("rank", f"There is no device {rank!r}: ranks are 0 to {self.k - 1}.")
        if rank == self.rank:
            raise Wrong("rank", f"Device {rank} sends to itself, or waits for itself.")

    def reduce_scatter(self, array):
        """This device's of ``k`` equal parts of the sum of all devices' arrays."""
        parts = np.split(np.array(array, dtype=np.float64), self.k)
        for other in range(self.k):
            if other != self.rank:
                self.send(parts[other], other)
        others = [self.receive(rank) for rank in range(self.k) if rank != self.rank]
        return parts[self.rank] + sum(others)

    def all_gather(self, part):
        """The parts of all devices, one behind the other."""
        for other in range(self.k):
            if other != self.rank:
                self.send(part, other)
        parts = [np.array(part) if r == self.rank else self.receive(r) for r in range(self.k)]
        return np.concatenate(parts)


def together(function, k, *arguments):
    """``[function(device, *arguments)]`` of ``k`` devices at once, and the bytes that each sent.

    ``arguments`` are lists with one entry a device. Raises what the first device raised that did
    not only wait for another one.
    """
    boxes = {(a, b): queue.SimpleQueue() for a in range(k) for b in range(k)}
    sent, results, errors = Counter(), [None] * k, {}

    def run(rank):
        try:
            device = Device(rank, k, boxes, sent)
            results[rank] = function(device, *(argument[rank] for argument in arguments))
        except BaseException as error:
            errors[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(k)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waiting = [error for error in errors.values() if getattr(error, "reason", "") == "deadlock"]
    for error in [error for error in errors.values() if error not in waiting] + waiting:
        raise error
    left = sum(not box.empty() for box in boxes.values())
    return results, [sent[rank] for rank in range(k)], left
