"""How Fast Could It Be?"""

from functools import partial

from d2lmgpu.course.exercises.formulas import formula


def positions(side, padding, stride, kernel) -> int:
    """Where a filter can stand, along one side: counted."""
    return len(range(0, side + 2 * padding - kernel + 1, stride))


def convolution(inputs, outputs, kernel, side, padding, stride, passes=3, each=2) -> int:
    """A product of each filter with what lies under it, at each pixel of the output."""
    pixels = positions(side, padding, stride, kernel) ** 2
    return passes * each * inputs * outputs * kernel**2 * pixels


formula(
    "convolution",
    "At how many pixels does the filter stand? At each of them it makes one product for each of "
    "its numbers, and for each channel of the output.",
    "Along a side it stands at (side + 2 padding - kernel) // stride + 1 places. The backward pass "
    "has two products as large as the forward pass.",
    cases=lambda g: [
        (
            int(g.integers(1, 9)),
            int(g.integers(2, 9)),
            kernel,
            int(g.integers(12, 33)),
            padding,
            stride,
        )
        for kernel, padding, stride in ((3, 1, 1), (5, 0, 1), (3, 1, 2), (7, 3, 2))
    ],
    right=lambda inputs, outputs, kernel, side, padding, stride: convolution(
        inputs, outputs, kernel, side, padding, stride
    ),
    slips={
        "forward": (partial(convolution, passes=1), "The backward pass is missing."),
        "pairs": (partial(convolution, each=1), "A product and its sum are two operations."),
        "input": (
            lambda inputs, outputs, kernel, side, *_: 6 * inputs * outputs * (kernel * side) ** 2,
            "The output has other pixels than the images.",
        ),
        "square": (
            lambda inputs, outputs, kernel, *rest: (
                convolution(inputs, outputs, kernel, *rest) // kernel
            ),
            "A filter has two sides.",
        ),
    },
    what="The number of operations",
    says="The operations are right, with padding and with strides.",
)


def gpus(g) -> tuple[int, float, float, int, float]:
    """A transformer on k GPUs whose MFU with one is possible."""
    k, peak = int(g.integers(2, 65)), 1e12 * float(g.integers(100, 1000))
    parameters = int(g.integers(10**8, 10**10))
    alone = float(g.uniform(0.1, 0.6)) * peak / 6 / parameters
    return parameters, alone, float(g.uniform(0.3, 0.95)) * k * alone, k, peak


formula(
    "device-or-exchange",
    "How many operations does a token cost, forward and backward, for each parameter?",
    "The peak of k GPUs is k times that of one; the tokens a second of k GPUs are those of all "
    "together.",
    cases=lambda g: [gpus(g) for _ in range(3)],
    right=lambda parameters, alone, together, k, peak: [
        3 * 2 * parameters * alone / peak,
        3 * 2 * parameters * (together / k) / peak,
    ],
    slips={
        "one-peak": (
            lambda parameters, alone, together, k, peak: [
                6 * parameters * rate / peak for rate in (alone, together)
            ],
            "k GPUs have k peaks.",
        ),
        "forward": (
            lambda parameters, alone, together, k, peak: [
                2 * parameters * alone / peak,
                2 * parameters * together / k / peak,
            ],
            "The backward pass is missing.",
        ),
        "share": (
            lambda parameters, alone, together, k, peak: [
                6 * parameters * alone / peak,
                together / (k * alone),
            ],
            "The second number is what is left of the first one; asked is an MFU.",
        ),
    },
    what="The list of both utilisations",
    says="Both are right: the first one speaks of the device, the second also of the exchange.",
)


def used(parameters, sequences, tokens, k, seconds, peak, passes=3) -> float:
    """What one GPU computes of its own sequences, over what it could."""
    return passes * 2 * parameters * sequences * tokens / (seconds * peak)


formula(
    "too-busy",
    "Whose tokens are counted, and whose peak is it divided by?",
    "Either all tokens over the peak of all GPUs, or one GPU's tokens over its own peak.",
    cases=lambda g: [
        (
            int(g.integers(10**8, 10**10)),
            int(g.integers(1, 17)),
            1024 * int(g.integers(1, 9)),
            k,
            float(g.uniform(1, 20)),
            1e12 * float(g.integers(100, 1000)),
        )
        for k in (2, 8, int(g.integers(16, 65)))
    ],
    right=lambda parameters, sequences, tokens, k, seconds, peak: used(
        parameters, sequences, tokens, k, seconds, peak
    ),
    slips={
        "one-peak": (
            lambda parameters, sequences, tokens, k, *rest: (
                k * used(parameters, sequences, tokens, k, *rest)
            ),
            "The tokens of all GPUs are held against the peak of one.",
        ),
        "twice-divided": (
            lambda parameters, sequences, tokens, k, *rest: (
                used(parameters, sequences, tokens, k, *rest) / k
            ),
            "The tokens of one GPU are held against the peak of all.",
        ),
        "forward": (
            partial(used, passes=1),
            "The backward pass is missing.",
        ),
    },
    what="The utilisation",
    says="The utilisation is right for any number of GPUs.",
)
