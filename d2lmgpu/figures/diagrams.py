"""Pictures of how things work, in the style of `charts`: ways to split, an allreduce in rounds."""

from collections.abc import Iterator

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb, to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from d2lmgpu.collectives.schedules import Schedule
from d2lmgpu.figures.chart import DRAWN_INK, WIDTH, Chart, styled
from d2lmgpu.figures.checks import is_series, need
from d2lmgpu.figures.device import LEGS
from d2lmgpu.figures.style import BLUE, COLORS, TINT
from d2lmgpu.machine.checks import is_whole

PALE = to_hex((*to_rgb(DRAWN_INK), 0.12), keep_alpha=True)  # what a device does not hold
TINTS = LinearSegmentedColormap.from_list("tints", [to_rgba(BLUE, 0.05), to_rgba(BLUE, TINT)])


def split_data(k: int = 2) -> Chart:
    """Data parallelism: every device has the whole model and its own part of the batch."""
    chart, axes = _devices(
        k,
        f"Splitting the data over {k} devices. Every device holds all layers of the model and "
        f"1/{k} of the batch. Once a step, the devices add up their gradients.",
    )
    for device in range(k):
        _batch(axes, device, [row * k // ROWS == device for row in range(ROWS)])
        for layer in range(LAYERS):
            _layer(axes, device, layer, 0, 1)
    for device in range(k - 1):
        _exchange(axes, device, TOP, "gradients,\nonce a step")
    return chart


def split_layers(k: int = 2) -> Chart:
    """Pipeline parallelism: every device has some of the layers and sees the whole batch."""
    chart, axes = _devices(
        k,
        f"Splitting the layers over {k} devices. Each device holds a few consecutive layers; the "
        "whole batch passes through all of them. What a device computes, the next one waits for.",
    )
    for device in range(k):
        _batch(axes, device, [device == 0] * ROWS)
        for layer in range(LAYERS):
            _layer(axes, device, layer, 0, float(layer * k // LAYERS == device))
    for device in range(k - 1):
        first = next(layer for layer in range(LAYERS) if layer * k // LAYERS == device + 1)
        between = _height(first - 0.5) + BAR / 2
        _exchange(axes, device, between, "activations on,\ngradients back")
    return chart


def split_model(k: int = 2) -> Chart:
    """Tensor parallelism: every device has a slice of every layer and sees the whole batch."""
    chart, axes = _devices(
        k,
        f"Splitting every layer over {k} devices. Each device holds 1/{k} of each layer and needs "
        "the whole batch. After every layer, the devices exchange their activations.",
    )
    for device in range(k):
        _batch(axes, device, [True] * ROWS)
        for layer in range(LAYERS):
            _layer(axes, device, layer, device / k, 1 / k)
    for device in range(k - 1):
        for layer in range(LAYERS):
            text = "activations,\nat every layer" if layer == LAYERS - 1 else ""
            _exchange(axes, device, _height(layer) + BAR / 2, text)
    return chart


@styled
def holdings(schedule) -> Chart:
    """An allreduce round by round: from how many devices each held number is a sum.

    One panel for the start and one a round; rows are the nodes, columns the numbers they hold.
    """
    need(_is_drawn(schedule), "schedule", schedule, "a schedule of at least one element")
    pictures = list(sums_after_rounds(schedule))
    k, rounds, size = schedule.num_devices, schedule.num_rounds, schedule.size
    facts = [
        f"{schedule.algorithm} allreduce over {k} devices in {rounds} rounds.",
        "At the start each number comes from one device, at the end every device holds sums of",
        f"{k}.",
        *(
            f"After round {i}: {(held[:k] == k).sum()} of {k * size} numbers are complete."
            for i, held in enumerate(pictures[1:])
        ),
    ]
    names = [f"device {i}" for i in range(k)] + ["host"] * (schedule.num_nodes - k)
    chart, panels = _panels(" ".join(facts), len(pictures), 1.9, across=4)
    for i, (axes, held) in enumerate(zip(panels, pictures, strict=True)):
        _tint(axes, held, k)
        for node, part in np.ndindex(held.shape):
            _write(axes, node, part, held[node, part])
        axes.grid(False)
        axes.set_xticks([])
        axes.set_title(f"round {i - 1}" if i else "start")
        axes.set_yticks(range(schedule.num_nodes), names)
        axes.label_outer()
    return chart


@styled
def traffic(schedules) -> Chart:
    """Bytes over each link, a panel a schedule: from the node of the row to that of the column.

    schedules: allreduces over the same devices, with the same number of elements. Numbers are
    thousands of bytes, for elements of 4 bytes.
    """
    need(
        is_series(schedules, _is_drawn),
        "schedules",
        schedules,
        "a list of schedules of at least one element",
    )
    links = [schedule.bytes_per_link() for schedule in schedules]
    need(
        len({s.num_devices for s in schedules}) == 1 and all(links),
        "schedules",
        schedules,
        "schedules over the same devices, at least two of them",
    )
    busiest = [max(sizes.values()) for sizes in links]
    facts = [f"Traffic on the links of {schedules[0].num_devices} devices"] + [
        f"{schedule.algorithm}: {len(sizes)} links, {most / 1000:g} kB over the busiest"
        for schedule, sizes, most in zip(schedules, links, busiest)
    ]
    chart, panels = _panels(". ".join(facts) + ".", len(links), 2.5, across=2)
    for axes, schedule, sizes in zip(panels, schedules, links, strict=True):
        matrix = np.zeros((schedule.num_nodes, schedule.num_nodes))
        for link, size in sizes.items():
            matrix[link] = size
            _write(axes, *link, f"{size / 1000:g}")
        _tint(axes, matrix, max(busiest))
        axes.set_aspect("equal")
        names = [*range(schedule.num_devices), *["host"] * (schedule.algorithm == "host")]
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(names)), names)
        axes.grid(False)
        axes.set(title=schedule.algorithm, xlabel="to", ylabel="from")
    return chart


def _panels(alt: str, number: int, height: float, across: int):
    """A chart and so many panels of that height in inches, no more across than a phone shows."""
    columns = min(number, across)
    rows = -(-number // columns)
    chart = Chart(alt, WIDTH * columns / across, height * rows)
    places = chart.subplots(rows, columns, sharey=True, squeeze=False).flat
    for spare in places[number:]:
        spare.remove()
    return chart, places[:number]


def _is_drawn(schedule) -> bool:
    return isinstance(schedule, Schedule) and schedule.size > 0


def _tint(axes, matrix, most) -> None:
    """The cells of a matrix as drawn rectangles (``imshow`` makes dots of them)."""
    rows, columns = matrix.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    axes.pcolormesh(*edges, matrix, cmap=TINTS, vmin=0, vmax=most)
    axes.set_ylim(rows - 0.5, -0.5)


def _write(axes, row, column, text, **look) -> None:
    """Write into the cell of a matrix."""
    axes.text(column, row, text, ha="center", va="center", **look)


def sums_after_rounds(schedule) -> Iterator[np.ndarray]:
    """At the start and after each round: from how many devices is what each node holds a sum?

    Arrays of whole numbers (num_nodes, size).
    """
    held = np.zeros((schedule.num_nodes, schedule.size), int)
    held[: schedule.num_devices] = 1
    yield held.copy()
    for sends in schedule.rounds:
        for send in sends:
            there = held[send.target, send.start : send.stop]
            there[:] = there * send.add + held[send.source, send.start : send.stop]
        yield held.copy()


# The three pictures of splitting: devices side by side, the batch below, layers as bars above it.
ROWS, LAYERS = 12, 4
DEVICE, GAP, BAR, STEP = 2.1, 2.1, 0.34, 0.62
BOTTOM, TOP = 1.0, 3.75
INCH = WIDTH / (2 * DEVICE + GAP + 1.4)  # of one: two devices are as wide as a phone
LEG = 0.18  # the legs of a device stand as far from its frame


def _devices(k: int, alt: str):
    most = len(COLORS)
    need(is_whole(k, 2, most), "k", k, f"2 to {most} devices")
    width = k * DEVICE + (k - 1) * GAP
    chart = Chart(alt, INCH * (width + 1.4), INCH * 5.15)
    axes = chart.subplots()
    axes.set(xlim=(-1.2, width + 0.2), ylim=(-0.8, 4.35), aspect="equal")
    axes.axis("off")
    axes.text(-0.25, BOTTOM + 1.3, "layers", ha="right", va="center")
    axes.text(-0.25, 0.25, "batch", ha="right", va="center")
    for device in range(k):
        x = _left(device)
        frame = FancyBboxPatch(
            (x, -0.2), DEVICE, TOP + 0.25, boxstyle="round,pad=0.08,rounding_size=0.35"
        )
        frame.set(facecolor="none", edgecolor=COLORS[device], linewidth=2)
        axes.add_patch(frame)
        left, right, foot, top = x - 0.08, x + DEVICE + 0.08, -0.28, TOP + 0.13
        across = [(left + right) / 2 + leg * DEVICE for leg in LEGS]
        up = [(foot + top) / 2 + leg * TOP for leg in LEGS]
        legs = dict(colors=COLORS[device], linewidths=3)
        axes.vlines(2 * across, [foot - LEG] * 3 + [top] * 3, [foot] * 3 + [top + LEG] * 3, **legs)
        axes.hlines(2 * up, [left - LEG] * 3 + [right] * 3, [left] * 3 + [right + LEG] * 3, **legs)
        axes.text(x + DEVICE / 2, -0.62, f"device {device}", ha="center", va="center")
    return chart, axes


def _left(device: int) -> float:
    return device * (DEVICE + GAP)


def _height(layer: float) -> float:
    return BOTTOM + layer * STEP


def _batch(axes, device: int, held) -> None:
    """One cell an example: filled where the device holds it."""
    size = (DEVICE - 0.4) / ROWS
    for row, is_held in enumerate(held):
        x = _left(device) + 0.2 + row * size
        color = COLORS[device] if is_held else PALE
        axes.add_patch(Rectangle((x, 0), size * 0.85, 0.5, facecolor=color))


def _layer(axes, device: int, layer: int, start: float, share: float) -> None:
    """A layer as a bar, of which the device holds `share`, from `start` on (parts of 1)."""
    x, full = _left(device) + 0.2, DEVICE - 0.4
    axes.add_patch(Rectangle((x, _height(layer)), full, BAR, facecolor=PALE))
    held = Rectangle((x + start * full, _height(layer)), share * full, BAR)
    held.set_facecolor(COLORS[device])
    axes.add_patch(held)


def _exchange(axes, device: int, height: float, text: str) -> None:
    """An arrow between a device and the next one."""
    left = _left(device) + DEVICE
    ends = (left + 0.2, height), (left + GAP - 0.2, height)
    both = dict(arrowstyle="<|-|>", mutation_scale=14, color=DRAWN_INK, linewidth=2)
    axes.add_patch(FancyArrowPatch(*ends, **both))
    middle = left + GAP / 2
    axes.text(middle, height + 0.12, text, ha="center", va="bottom")
