"""Overlap: Nobody Should Wait"""

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "look-ahead",
    "When may the host begin with batch i? It is busy until it is done with batch i − 1, and at "
    "most `ahead` of those before it may be not yet trained on.",
    "Write two lists, the ends of the host and of the device. Each entry is a max over two "
    "earlier ones, plus one time.",
)
def the_end(total, g) -> str:
    """total(host, device, ahead): when the device is done with all batches."""
    for ahead in (0, 1, 2):
        for n in (1, 2, 6, 12):
            host, device = g.integers(1, 10, n).tolist(), g.integers(1, 10, n).tolist()
            answer = float(array(total(list(host), list(device), ahead), "The time", ()))
            right = simulate(host, device, ahead + 1)  # with the one that it prepares
            if abs(answer - right) > 1e-9:
                serial = abs(answer - sum(host) - sum(device)) < 1e-9
                free = abs(answer - simulate(host, device, n)) < 1e-9
                reason = "serial" if serial else "unlimited" if free else "value"
                text = f"Host {host}, device {device}, {ahead} ahead: you say {answer:g}."
                if serial:
                    text += " Nothing overlaps in it."
                elif free:
                    text += " The host may be as far ahead in it as it likes."
                raise Wrong(reason, text)
    return "The times are those of the simulated timeline, for up to two batches ahead."


def simulate(host, device, held) -> float:
    """The same by moving a clock: the host holds at most ``held`` batches that are not done."""
    time = loaded = done = 0
    host_end = device_end = None
    while done < len(host):
        if host_end is None and loaded < len(host) and loaded - done < held:
            host_end = time + host[loaded]
        if device_end is None and done < loaded:
            device_end = time + device[done]
        time = min(end for end in (host_end, device_end) if end is not None)
        if host_end == time:
            loaded, host_end = loaded + 1, None
        if device_end == time:
            done, device_end = done + 1, None
    return time


class Clock:
    """A host that prepares batches, and a device that computes while the host goes on."""

    def __init__(self, host, device, losses):
        self.costs = host
        self.losses = losses
        self.device = device
        self.now = 0
        self.free = 0
        self.steps = 0

    def __len__(self):
        return len(self.costs)

    def __iter__(self):
        for number, seconds in enumerate(self.costs):
            self.now += seconds
            yield number

    def step(self, batch) -> "Loss":
        self.free = max(self.free, self.now) + self.device[batch]
        self.steps += 1
        return Loss(self, self.free, self.losses[batch])


class Loss:
    """A loss that is still being computed: to read it is to wait for it."""

    def __init__(self, clock, ready, value):
        self.clock = clock
        self.ready = ready
        self.value = value

    def item(self) -> float:
        self.clock.now = max(self.clock.now, self.ready)
        return self.value

    __float__ = item


@exercise(
    "sync",
    "When does the host wait for the device in this loop? Which line makes it wait?",
    "Keep the losses as they are. Read them when all steps have been issued.",
)
def the_host_goes_on(mean_loss, g) -> str:
    """mean_loss(batches, device): with ``device.step(batch).item()``; the host must not wait."""
    for n in (2, 6, 12):
        host, device = g.integers(1, 10, n).tolist(), g.integers(1, 10, n).tolist()
        losses = g.uniform(1, 3, n).tolist()
        clock = Clock(host, device, losses)
        answer = float(array(mean_loss(clock, clock), "The mean loss", ()))
        if clock.steps != n:
            raise Wrong("steps", f"{n} batches, and {clock.steps} steps.")
        if abs(answer - sum(losses) / n) > 1e-9:
            raise Wrong("value", f"{n} batches: you say {answer:.4g}, which is not the mean loss.")
        end, enough = max(clock.now, clock.free), simulate(host, device, 2)
        if end > enough:
            text = f"{n} batches take {end} s: the host waits. Without that, {enough} s are enough."
            raise Wrong("sync", text)
    return "The mean is right, and the host prepares while the device computes."


def last_exchange(times, sizes, bucket, latency, bandwidth) -> float:
    """By moving through events: buckets that are full, and a link that takes one at a time."""
    full, waiting, now = [], 0, 0.0
    for number, (seconds, size) in enumerate(zip(times, sizes, strict=True), 1):
        now, waiting = now + seconds, waiting + size
        if waiting >= bucket or number == len(times):
            full.append((now, waiting))
            waiting = 0
    end = 0.0
    for ready, size in full:
        end = max(end, ready) + latency + size / bandwidth
    return end


def after_the_backward_pass(times, sizes, bucket, latency, bandwidth) -> float:
    alone = last_exchange([0] * len(times), sizes, bucket, latency, bandwidth)
    return sum(times) + alone


formula(
    "buckets",
    "When is a bucket full, and what can it still have to wait for then?",
    "Keep two numbers: the time of the backward pass, and the time at which the link is free. A "
    "message starts at the later of the two.",
    cases=lambda g: [
        (
            g.integers(1, 9, n).tolist(),
            g.integers(1, 9, n).tolist(),
            bucket,
            float(g.uniform(0.1, 2)),
            float(g.uniform(0.5, 4)),
        )
        for n in (1, 4, 12)
        for bucket in (1, 10, 1000)
    ],
    right=last_exchange,
    slips={
        "serial": (after_the_backward_pass, "In it nothing is sent during the backward pass."),
        "latency": (
            lambda t, s, bucket, latency, b: last_exchange(t, s, bucket, 0, b),
            "Every message has a latency.",
        ),
        "rest": (
            lambda t, s, bucket, latency, b: last_exchange(t, s, 0, latency, b),
            "In it each layer is sent for itself.",
        ),
    },
    what="The end",
    says="The end is that of the simulated link, for small, large and single buckets.",
)
