"""Cost Model: Will a Second GPU Pay?"""

from math import comb

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "ring-time",
    "How many rounds has a ring of k devices, and how long is the message of one round?",
    "Each round costs one latency and the time of one part on the link.",
)
def seconds_of_a_ring(seconds, g) -> str:
    """seconds(k, num_bytes, latency, bandwidth): of an allreduce by ring."""
    for k in (1, 2, 3, 8, 64):
        size, latency = int(g.integers(10**6, 10**8)), float(g.uniform(1e-6, 1e-3))
        bandwidth = float(g.uniform(1e8, 1e11))
        right = sum(latency + size / k / bandwidth for _ in range(2 * k - 2))
        answer = float(array(seconds(k, size, latency, bandwidth), "The time", ()))
        if abs(answer - right) > 1e-9 * max(right, 1e-12):
            text = f"k = {k}: you say {answer:.3g} s"
            if k == 1:
                raise Wrong("one", f"{text}, and one device has nothing to send.")
            free = sum(size / k / bandwidth for _ in range(2 * k - 2))
            reason = "latency" if abs(answer - free) < 1e-9 * free else "value"
            raise Wrong(reason, f"{text}, {answer / right:.2f} times what it takes.")
    return "The time is right from one to sixty-four devices."


formula(
    "step",
    "What does the host do in a step, and what do the devices do? With one process, who issues for "
    "all of them?",
    "Host and devices work at the same time: the longer one counts. Where the loop waits after "
    "each batch, loading cannot hide. One device has nothing to exchange.",
    cases=lambda g: [
        (k, *(float(factor) for factor in g.uniform(1, 9, 4) * [1, issue, 1, 1]), waits)
        for k in (1, 2, 4)
        for waits in (True, False)
        for issue in (1, 0.1)
    ],
    right=lambda k, load, issue, compute, exchange, waits: (
        max(sum([issue] * k) + (0 if waits else load), compute / k + exchange * (k > 1))
        + (load if waits else 0)
    ),
    slips={
        "issue": (
            lambda k, load, issue, compute, exchange, waits: (
                max(issue + load * (not waits), compute / k + exchange * (k > 1)) + load * waits
            ),
            "One process issues for all devices.",
        ),
        "one": (
            lambda k, load, issue, compute, exchange, waits: (
                max(k * issue + load * (not waits), compute / k + exchange) + load * waits
            ),
            "One device has nobody to exchange with.",
        ),
        "serial": (
            lambda k, load, issue, compute, exchange, waits: (
                load + k * issue + compute / k + exchange * (k > 1)
            ),
            "In it nothing happens at the same time.",
        ),
    },
    what="The step time",
    says="The step time is the model's, with and without a wait after each batch.",
)

formula(
    "bus",
    "How many bytes does one device send in a ring, for an array of `num_bytes`?",
    "A bandwidth is bytes that really travelled over seconds. There are 2(k − 1) rounds of 1/k.",
    cases=lambda g: [
        (k, int(g.integers(10**6, 10**8)), float(g.uniform(0.01, 1))) for k in (2, 4, 64)
    ],
    right=lambda k, num_bytes, seconds: sum(num_bytes / k for _ in range(2 * k - 2)) / seconds,
    slips={
        "count": (
            lambda k, num_bytes, seconds: num_bytes / seconds,
            "The bytes of the array are not those that were sent.",
        ),
        "one-way": (
            lambda k, num_bytes, seconds: (k - 1) / k * num_bytes / seconds,
            "The ring goes round twice.",
        ),
    },
    what="The bandwidth",
    says="The bandwidth counts what each device has sent.",
)

formula(
    "late",
    "All wait if at least one is late. How likely is it that none is?",
    "The others are independent: multiply the probabilities of being in time.",
    cases=lambda g: [
        (k, float(g.uniform(0.001, 0.1)), float(g.uniform(0.1, 2))) for k in (1, 8, 256)
    ],
    right=lambda k, p, delay: (
        delay * sum(comb(k, late) * p**late * (1 - p) ** (k - late) for late in range(1, k + 1))
    ),
    slips={
        "one": (lambda k, p, delay: p * delay, "In it nobody waits for the others."),
        "sum": (
            lambda k, p, delay: k * p * delay,
            "If two are late at once, that is waited for once.",
        ),
    },
    what="The mean wait",
    says="The mean wait is right from one to 256 devices.",
    tolerance=1e-7,
)
