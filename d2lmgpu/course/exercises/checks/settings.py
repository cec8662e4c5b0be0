"""Messages, Optimizers and Settings"""

import numpy as np

from d2lmgpu.course.exercises.formulas import formula
from d2lmgpu.course.exercises.registry import Wrong, array, exercise


@exercise(
    "bfloat16",
    "bf16 is a float32 whose lower 16 bits are dropped. Which of the two neighbours is nearer?",
    "`x.view(np.uint32)` shows the bits. Add half of the last bit that stays, 0x7FFF, and one more "
    "if that bit is set, before the lower 16 are cleared.",
)
def like_the_hardware(round_to_bf16, g) -> str:
    """round_to_bf16(x): float32 values as the nearest bf16, ties to the even one, as float32."""
    scale = 10.0 ** g.integers(-20, 20, 40)
    x = (g.normal(size=40) * scale).astype(np.float32)
    ties = (np.arange(8, dtype=np.uint32) << 16) + np.uint32(0x3F808000)
    x = np.concatenate([x, ties.view(np.float32), np.float32([0, 1, -1, 257])])
    answer = array(round_to_bf16(x.copy()), "What is returned", x.shape)
    bits = x.view(np.uint32)
    up = bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)
    expected = (up & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    if not np.array_equal(answer, expected):
        i = int(np.flatnonzero(answer != expected)[0])
        cut = (bits & np.uint32(0xFFFF0000)).view(np.float32)
        wrong = np.count_nonzero(answer != expected)
        text = f"{wrong} of {len(x)} values differ, the first is {x[i]:.6g}."
        if np.array_equal(answer, cut):
            raise Wrong("cut", f"{text} The lower bits are cut off, and not rounded.")
        if np.array_equal(answer, x):
            raise Wrong("unchanged", f"{text} Nothing is rounded.")
        if np.all((bits & 0xFFFF == 0x8000) | (answer == expected)):
            raise Wrong("ties", f"{text} In the middle between two values the even one is taken.")
        raise Wrong("value", text)
    return "All values are the nearest ones of 16 bits, and ties go to the even one."


formula(
    "pays-after",
    "How much time does each step save? How many of these are as long as compiling?",
    "A step takes `step / factor` afterwards. Compiling pays from the first whole step on at which "
    "the sum is smaller or equal.",
    cases=lambda g: [
        (float(g.uniform(5, 60)), float(g.uniform(0.01, 0.5)), factor) for factor in (1.1, 1.5, 3.0)
    ],
    right=lambda seconds, step, factor: int(np.ceil(seconds / (step - step / factor))),
    slips={
        "share": (
            lambda seconds, step, factor: int(np.ceil(seconds / (step * (factor - 1)))),
            "1.5 times as fast saves a third of a step, and not a half.",
        ),
        "compiled": (
            lambda seconds, step, factor: int(np.ceil(seconds / (step / factor))),
            "That is how many compiled steps last as long as compiling.",
        ),
        "fraction": (
            lambda seconds, step, factor: seconds / (step - step / factor),
            "A number of steps is a whole number.",
        ),
    },
    what="The number of steps",
    says="From that step on compiling has paid for itself.",
)

formula(
    "velocity",
    "Write down the first three steps for the gradient 1. Which sum is that?",
    "It is g (1 + mu + mu^2 + ...), a geometric series of n terms.",
    cases=lambda g: [(float(g.normal()), mu, n) for mu in (0.5, 0.9) for n in (2, 3, 10, 200)],
    right=lambda gradient, mu, n: gradient * sum(mu**i for i in range(n)),
    slips={
        "mean": (
            lambda gradient, mu, n: gradient * (1 - mu**n),
            "That is a running mean, as Adam has it.",
        ),
        "limit": (
            lambda gradient, mu, n: gradient / (1 - mu),
            "That is where it is heading, after very many steps.",
        ),
    },
    what="The velocity",
    says="Momentum sums up: with 0.9 it heads for ten times the gradient.",
)
