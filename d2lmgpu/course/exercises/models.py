"""Exercises in which a formula or a timeline is the answer; others are simulated to compare."""

import numpy as np

from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "look-ahead",
    "When may the host begin with batch i? It is busy until it is done with batch i − 1, and it "
    "may not be more than `ahead` batches in front of the device.",
    "Write two lists, the ends of the host and of the device. Each entry is a max over two "
    "earlier ones, plus one time.",
)
def the_end(total, g):
    """total(host, device, ahead): when the device is done with all batches."""
    for ahead in (1, 2, 3):
        for n in (1, 2, 6, 12):
            host, device = g.integers(1, 10, n).tolist(), g.integers(1, 10, n).tolist()
            found = float(array(total(list(host), list(device), ahead), "The time", ()))
            right = simulate(host, device, ahead)
            if abs(found - right) > 1e-9:
                serial = abs(found - sum(host) - sum(device)) < 1e-9
                free = abs(found - simulate(host, device, n)) < 1e-9
                reason = "serial" if serial else "unlimited" if free else "value"
                text = f"Host {host}, device {device}, {ahead} ahead: you say {found:g}."
                if serial:
                    text += " Nothing overlaps in it."
                elif free:
                    text += " The host may be as far ahead in it as it likes."
                raise Wrong(reason, text)
    return "The times are those of the simulated timeline, for one to three batches ahead."


def simulate(host, device, ahead):
    """The same by moving a clock: the host holds at most ``ahead`` batches that are not done."""
    time = loaded = done = 0
    host_end = device_end = None
    while done < len(host):
        if host_end is None and loaded < len(host) and loaded - done < ahead:
            host_end = time + host[loaded]
        if device_end is None and done < loaded:
            device_end = time + device[done]
        time = min(end for end in (host_end, device_end) if end is not None)
        if host_end == time:
            loaded, host_end = loaded + 1, None
        if device_end == time:
            done, device_end = done + 1, None
    return time


@exercise(
    "ring-time",
    "How many rounds has a ring of k devices, and how long is the message of one round?",
    "Each round costs one latency and the time of one part on the link.",
)
def seconds_of_a_ring(seconds, g):
    """seconds(k, num_bytes, latency, bandwidth): of an allreduce by ring."""
    for k in (1, 2, 3, 8, 64):
        size, latency = int(g.integers(10**6, 10**8)), float(g.uniform(1e-6, 1e-3))
        bandwidth = float(g.uniform(1e8, 1e11))
        right = sum(latency + size / k / bandwidth for _ in range(2 * k - 2))
        found = float(array(seconds(k, size, latency, bandwidth), "The time", ()))
        if abs(found - right) > 1e-9 * max(right, 1e-12):
            text = f"k = {k}: you say {found:.3g} s"
            if k == 1:
                raise Wrong("one", f"{text}, and one device has nothing to send.")
            free = sum(size / k / bandwidth for _ in range(2 * k - 2))
            reason = "latency" if abs(found - free) < 1e-9 * free else "value"
            raise Wrong(reason, f"{text}, {found / right:.2f} times what it takes.")
    return "The time is right from one to sixty-four devices."


@exercise(
    "warm-up",
    "What is the learning rate in the very first update, and in the first one after the warm-up?",
    "A straight line from the rate of the small batch to that rate times k; flat behind it.",
)
def rates(lr_at, g):
    """lr_at(update, base, k, warmup): the rate rises from base to k times base in ``warmup``."""
    for k in (1, 2, 8):
        base, warmup = float(g.uniform(0.01, 0.5)), int(g.integers(2, 50))
        for update in range(warmup + 3):
            right = np.interp(update, [0, warmup], [base, k * base])
            found = float(array(lr_at(update, base, k, warmup), "The rate", ()))
            if abs(found - right) > 1e-9:
                where = "start" if update == 0 else "rise" if update < warmup else "end"
                text = f"k = {k}, update {update} of {warmup}: {found:.4g} is off"
                raise Wrong(where, f"{text} by {found - right:+.2g}.")
    return "The rate rises in a straight line and stays."
