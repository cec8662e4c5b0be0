"""Pictures of how things work, in the style of `charts`: ways to split, an allreduce in rounds."""

import matplotlib
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from d2lmgpu.charts import DEVICE_COLORS, INK, STYLE, Chart

MOVED, PALE = "#D55E00", "#E8E8E8"


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
        last = next(layer for layer in range(LAYERS) if layer * k // LAYERS == device + 1)
        height = (_height(last - 1) + _height(last)) / 2
        _exchange(axes, device, height + BAR / 2, "activations on,\ngradients back")
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


def holdings(schedule) -> Chart:
    """An allreduce round by round: from how many devices each held number is a sum.

    One panel for the start and one a round; rows are the nodes, columns the numbers they hold.
    """
    pictures = list(sums_after_rounds(schedule))
    k, last = schedule.num_devices, pictures[-1]
    chart = Chart(
        f"{schedule.algorithm} allreduce over {k} devices in {schedule.num_rounds} rounds. At the "
        f"start each number comes from one device, at the end every device holds sums of {k}. "
        + " ".join(
            f"After round {number}: {int(np.sum(held[:k] == k))} of {last[:k].size} numbers are "
            "complete."
            for number, held in enumerate(pictures[1:])
        ),
        min(9.5, 1.35 * len(pictures)), 1.9,
    )  # fmt: skip
    with matplotlib.rc_context(STYLE):
        panels = chart.subplots(1, len(pictures), sharey=True, squeeze=False)[0]
        for number, (axes, held) in enumerate(zip(panels, pictures, strict=True)):
            axes.imshow(held, cmap="Blues", vmin=0, vmax=k + 1, aspect="auto")
            for node, part in np.ndindex(held.shape):
                color = "white" if held[node, part] > k / 2 else INK
                axes.text(part, node, held[node, part], ha="center", va="center", color=color)
            axes.grid(False)
            axes.set_xticks([])
            axes.set_title("start" if number == 0 else f"round {number - 1}", fontsize=9)
        names = [f"device {i}" for i in range(k)] + ["host"] * (schedule.num_nodes - k)
        panels[0].set_yticks(range(schedule.num_nodes), names)
    return chart


def traffic(schedules) -> Chart:
    """Bytes over each link, a panel a schedule: from the node of the row to that of the column.

    schedules: allreduces over the same devices, with the same number of elements. Numbers are
    thousands of bytes, for elements of 4 bytes.
    """
    links = [schedule.bytes_per_link() for schedule in schedules]
    said = [
        f"{schedule.algorithm}: {len(sizes)} links, {max(sizes.values()) / 1000:g} kB over the "
        "busiest"
        for schedule, sizes in zip(schedules, links, strict=True)
    ]
    alt = f"Traffic on the links of {schedules[0].num_devices} devices. {'. '.join(said)}."
    chart = Chart(alt, 2.3 * len(links), 2.5)
    most = max(max(sizes.values()) for sizes in links)
    with matplotlib.rc_context(STYLE):
        panels = chart.subplots(1, len(links), squeeze=False)[0]
        for axes, schedule, sizes in zip(panels, schedules, links, strict=True):
            matrix = np.zeros((schedule.num_nodes, schedule.num_nodes))
            matrix[tuple(zip(*sizes, strict=True))] = list(sizes.values())
            axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1.2 * most)
            for (source, target), size in sizes.items():
                color = "white" if size > most / 2 else INK
                text = dict(ha="center", va="center", color=color, fontsize=8)
                axes.text(target, source, f"{size / 1000:g}", **text)
            names = [*range(schedule.num_devices), *["host"] * (schedule.algorithm == "host")]
            axes.set_xticks(range(len(names)), names)
            axes.set_yticks(range(len(names)), names)
            axes.grid(False)
            axes.set_title(schedule.algorithm)
            axes.set(xlabel="to", ylabel="from")
    return chart


def sums_after_rounds(schedule):
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
WIDTH, GAP, BAR, STEP = 2.4, 1.7, 0.34, 0.62
BOTTOM, TOP = 1.0, 3.75


def _devices(k: int, alt: str):
    if not 2 <= k <= len(DEVICE_COLORS):
        raise ValueError(f"The picture is drawn for 2 to {len(DEVICE_COLORS)} devices, not {k}.")
    width = k * WIDTH + (k - 1) * GAP
    chart = Chart(alt, 0.95 * width + 1, 3.6)
    axes = chart.subplots()
    axes.set(xlim=(-1.2, width + 0.2), ylim=(-0.7, 4.35), aspect="equal")
    axes.axis("off")
    axes.text(-0.25, BOTTOM + 1.3, "layers", ha="right", va="center", color=INK)
    axes.text(-0.25, 0.25, "batch", ha="right", va="center", color=INK)
    for device in range(k):
        x = _left(device)
        frame = FancyBboxPatch((x, -0.2), WIDTH, TOP + 0.25, boxstyle="round,pad=0.08")
        frame.set(facecolor="white", edgecolor=INK)
        axes.add_patch(frame)
        axes.text(x + WIDTH / 2, -0.55, f"device {device}", ha="center", va="center", color=INK)
    return chart, axes


def _left(device: int) -> float:
    return device * (WIDTH + GAP)


def _height(layer: int) -> float:
    return BOTTOM + layer * STEP


def _batch(axes, device: int, held) -> None:
    """One cell an example: filled where the device holds it."""
    size = (WIDTH - 0.4) / ROWS
    for row, is_held in enumerate(held):
        x = _left(device) + 0.2 + row * size
        color = DEVICE_COLORS[device] if is_held else PALE
        axes.add_patch(Rectangle((x, 0), size * 0.85, 0.5, facecolor=color))


def _layer(axes, device: int, layer: int, start: float, share: float) -> None:
    """A layer as a bar, of which the device holds `share`, from `start` on (parts of 1)."""
    x, full = _left(device) + 0.2, WIDTH - 0.4
    axes.add_patch(Rectangle((x, _height(layer)), full, BAR, facecolor=PALE))
    held = Rectangle((x + start * full, _height(layer)), share * full, BAR)
    held.set_facecolor(DEVICE_COLORS[device])
    axes.add_patch(held)


def _exchange(axes, device: int, height: float, text: str) -> None:
    """An arrow between a device and the next one."""
    left = _left(device) + WIDTH
    ends = (left + 0.02, height), (left + GAP - 0.02, height)
    both = dict(arrowstyle="<|-|>", mutation_scale=14, color=MOVED, linewidth=2)
    axes.add_patch(FancyArrowPatch(*ends, **both))
    middle = left + GAP / 2
    axes.text(middle, height + 0.12, text, ha="center", va="bottom", color=MOVED, fontsize=8)
