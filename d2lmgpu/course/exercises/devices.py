"""Threads that stand for devices: they send and receive, and every byte is counted."""

import threading
from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong


class Wires:
    """What is under way between ``k`` devices. It notices when all of them wait for each other."""

    def __init__(self, k):
        self.boxes = defaultdict(deque)
        self.waits = {}
        self.running = k
        self.sent, self.messages = [0] * k, [0] * k
        self.change = threading.Condition()

    def put(self, source, to, message) -> None:
        with self.change:
            self.boxes[source, to].append(message)
            self.sent[source] += message.nbytes
            self.messages[source] += 1
            self.change.notify_all()

    def take(self, source, to) -> tuple | None:
        """The next message; None if it will never come."""
        with self.change:
            box = self.waits[to] = self.boxes[source, to]
            while not box and not self.stuck():
                self.change.wait()
            del self.waits[to]
            return box.popleft() if box else None

    def stuck(self) -> bool:
        return len(self.waits) == self.running and not any(self.waits.values())

    def end(self) -> None:
        """A device has come to its end."""
        with self.change:
            self.running -= 1
            self.change.notify_all()


class Device:
    """One of ``k`` devices: ``rank``, ``send(array, to)`` and ``receive(source)``.

    A message is a copy, and arrives in the order of sending. ``all_gather`` and ``reduce_scatter``
    are there for exercises that may use them.
    """

    def __init__(self, rank, k, wires):
        self.rank = rank
        self.k = k
        self._wires = wires

    def send(self, array, to) -> None:
        """Send a copy of ``array`` to the device of rank ``to``; does not wait."""
        self._check(to)
        self._wires.put(self.rank, to, np.array(array, dtype=np.float64))

    def receive(self, source) -> np.ndarray:
        """The next array that the device of rank ``source`` has sent to this one; waits for it."""
        self._check(source)
        message = self._wires.take(source, self.rank)
        if message is None:
            text = f"Device {self.rank} of {self.k} waits for device {source}, which sends nothing."
            raise Wrong("deadlock", text)
        return message

    def _check(self, rank):
        if not isinstance(rank, (int, np.integer)) or not 0 <= rank < self.k:
            raise Wrong("rank", f"There is no device {rank!r}: ranks are 0 to {self.k - 1}.")
        if rank == self.rank:
            raise Wrong("rank", f"Device {rank} sends to itself, or waits for itself.")

    def reduce_scatter(self, array) -> np.ndarray:
        """This device's of ``k`` equal parts of the sum of all devices' arrays."""
        parts = np.split(np.array(array, dtype=np.float64), self.k)
        for other in range(self.k):
            if other != self.rank:
                self.send(parts[other], other)
        others = [self.receive(rank) for rank in range(self.k) if rank != self.rank]
        return parts[self.rank] + sum(others)

    def all_gather(self, part) -> np.ndarray:
        """The parts of all devices, one behind the other; a number is a part of length 1."""
        own = np.atleast_1d(np.array(part, dtype=np.float64))
        for other in range(self.k):
            if other != self.rank:
                self.send(own, other)
        parts = [own if rank == self.rank else self.receive(rank) for rank in range(self.k)]
        return np.concatenate(parts)


class Exchange(NamedTuple):
    """What each device returned, the bytes and messages that it sent, and messages left unread."""

    results: list
    sent: list
    messages: list
    left: int


def together(function, k, *arguments) -> Exchange:
    """``function(device, *arguments)`` on ``k`` devices at once; an Exchange.

    ``arguments`` are lists with one entry a device. Raises what the first device raised that did
    not only wait for another one.
    """
    wires, results, errors = Wires(k), [None] * k, []

    def run(rank):
        try:
            device = Device(rank, k, wires)
            results[rank] = function(device, *(argument[rank] for argument in arguments))
        except BaseException as error:
            errors.append(error)
        finally:
            wires.end()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(k)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in sorted(errors, key=lambda error: getattr(error, "reason", "") == "deadlock"):
        raise error
    left = sum(bool(box) for box in wires.boxes.values())
    return Exchange(results, wires.sent, wires.messages, left)
