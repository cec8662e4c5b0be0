"""The charts of the course, in one style; `drawings` has the pictures of how things work.

Each function returns a `Chart`: a Matplotlib figure that shows itself in a notebook as an SVG
picture and carries `alt`, a text that says what the picture shows. Measured is drawn solid,
modelled dashed.
"""

import io
from html import escape
from statistics import median

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

DEVICE_COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]  # Okabe and Ito, colour-blind safe
INK = "#222222"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "d2lmgpu",  # the same chart is the same file
}


class Chart(Figure):
    """A figure with a text alternative, `alt`."""

    def __init__(self, alt: str, width: float, height: float):
        """width and height in inches."""
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white")
        self.alt = alt

    def svg(self) -> str:
        """The picture as an SVG element that fits its column and speaks its text alternative."""
        out = io.StringIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(out, format="svg", metadata={"Date": None})
        svg = out.getvalue()
        label = escape(self.alt, quote=True)
        opening = f'<svg role="img" aria-label="{label}" style="max-width:100%;height:auto" '
        return svg[svg.index("<svg") :].replace("<svg ", opening, 1)

    def _repr_html_(self):
        return self.svg()


def scaling(measured: dict, modelled: dict, title: str, ylabel: str = "speedup") -> Chart:
    """Curves over the number of devices: measured solid, modelled dashed.

    measured, modelled: name of the run -> {number of devices: value}; a name that is in both has
    one colour. title says the point. For speedups, the ideal (value = devices) is drawn dotted.
    """
    chart = Chart(_say(title, ylabel, "devices", measured, modelled), 6.5, 3.6)
    with matplotlib.rc_context(STYLE):
        axes = chart.subplots()
        names = list(dict.fromkeys([*measured, *modelled]))
        ticks = sorted({k for curve in [*measured.values(), *modelled.values()] for k in curve})
        if ylabel == "speedup":
            axes.plot(ticks, ticks, ":", color="gray", label="ideal")
        for name, color in zip(names, _colors(len(names)), strict=True):
            for kind, runs, style in (("measured", measured, "o-"), ("modelled", modelled, "--")):
                if name in runs:
                    x, y = zip(*sorted(runs[name].items()), strict=True)
                    axes.plot(x, y, style, color=color, label=f"{name}, {kind}")
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(k) for k in ticks])
        if ylabel == "speedup":
            axes.set_yscale("log", base=2)
            axes.set_yticks(ticks, [str(k) for k in ticks])
        axes.minorticks_off()
        axes.set(xlabel="devices", ylabel=ylabel, title=title)
        axes.legend(frameon=False)
    return chart


def bars(measured: dict, modelled: dict, title: str, ylabel: str) -> Chart:
    """One group a name: measured as a filled bar, modelled as a dashed outline.

    measured, modelled: name of the group -> value; either may lack a name. title says the point.
    """
    chart = Chart(_say(title, ylabel, None, measured, modelled), 6.5, 3.4)
    with matplotlib.rc_context(STYLE):
        axes = chart.subplots()
        names = list(dict.fromkeys([*measured, *modelled]))
        left = [(i - 0.2, measured[name]) for i, name in enumerate(names) if name in measured]
        right = [(i + 0.2, modelled[name]) for i, name in enumerate(names) if name in modelled]
        if left:
            axes.bar(*zip(*left, strict=True), width=0.38, color=DEVICE_COLORS[0], label="measured")
        if right:
            outline = dict(facecolor="white", edgecolor=INK, linestyle="--", linewidth=1.2)
            axes.bar(*zip(*right, strict=True), width=0.36, label="modelled", **outline)
        axes.set_xticks(range(len(names)), names)
        axes.grid(False, axis="x")
        axes.set_axisbelow(True)
        axes.set(ylabel=ylabel, title=title)
        axes.legend(frameon=False)
    return chart


def bands(curves: dict, title: str, xlabel: str, ylabel: str) -> Chart:
    """Several runs of each setting: the median as a line, from least to most as a band.

    curves: name -> runs, each a list of values, one a step from 1 on; all measured.
    """
    medians = {name: [median(step) for step in zip(*runs)] for name, runs in curves.items()}
    last = ", ".join(f"{name} {values[-1]:.2f}" for name, values in medians.items())
    chart = Chart(f"{title}. Median {ylabel} at the last {xlabel}: {last}.", 5.5, 3.2)
    with matplotlib.rc_context(STYLE):
        axes = chart.subplots()
        for (name, runs), color in zip(curves.items(), _colors(len(curves)), strict=True):
            steps = range(1, len(medians[name]) + 1)
            axes.fill_between(steps, *zip(*[(min(s), max(s)) for s in zip(*runs)]), alpha=0.2,
                              color=color)  # fmt: skip
            axes.plot(steps, medians[name], "o-", color=color, label=name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        axes.legend(frameon=False)
    return chart


def costs(
    modelled: dict, title: str, xlabel: str, ylabel: str, measured=None, marks=None, scale="log"
) -> Chart:
    """Curves of a cost: modelled dashed, measured as dots on a solid line, name -> {x: y} each.

    A name that is in both has one colour. marks: label -> (x, y) on the modelled curves. scale is
    that of both axes, "log" or "linear" (then from 0 up). title says the point.
    """
    measured, marks = measured or {}, marks or {}
    ends = [
        {name: {x: curve[x] for x in (min(curve), max(curve))} for name, curve in curves.items()}
        for curves in (measured, modelled)
    ]
    said = [f" {label}: {_number(y)} at {_number(x)} {xlabel}." for label, (x, y) in marks.items()]
    chart = Chart(_say(title, ylabel, xlabel, *ends) + "".join(said), 6.5, 3.6)
    names = list(dict.fromkeys([*measured, *modelled]))
    with matplotlib.rc_context(STYLE):
        axes = chart.subplots()
        for name, color in zip(names, _colors(len(names)), strict=True):
            for kind, curves, style in (("measured", measured, "o-"), ("modelled", modelled, "--")):
                if name in curves:
                    label = f"{name}, {kind}" if measured else name
                    x, y = zip(*sorted(curves[name].items()), strict=True)
                    axes.plot(x, y, style, color=color, label=label)
        for number, (label, at) in enumerate(marks.items()):
            marker = "oD"[number % 2]
            axes.plot(*at, marker, color=INK, fillstyle="none", markersize=9, label=label)
        axes.set(xscale=scale, yscale=scale, xlabel=xlabel)
        axes.set_ylabel(ylabel if measured else f"{ylabel}, modelled")
        if scale == "linear":
            axes.set_ylim(bottom=0)
        axes.set_title(title)
        axes.legend(frameon=False)
    return chart


def timeline(lanes: dict, title: str, kind: str = "modelled") -> Chart:
    """What each lane does when: name -> [(start, end, what)], in milliseconds.

    kind is "measured" (drawn solid), "simulated" or "modelled" (dashed). title says the point.
    """
    said = [
        f"{lane}: " + ", ".join(f"{what} from {a:.3g} to {b:.3g} ms" for a, b, what in spans)
        for lane, spans in lanes.items()
    ]
    chart = Chart(
        f"{title.rstrip('.')} ({kind}). " + ". ".join(said) + ".", 7, 0.6 + 0.5 * len(lanes)
    )
    whats = list(dict.fromkeys(what for spans in lanes.values() for _, _, what in spans))
    colors = dict(zip(whats, _colors(len(whats)), strict=True))
    with matplotlib.rc_context(STYLE):
        axes = chart.subplots()
        for height, spans in enumerate(lanes.values()):
            for start, end, what in spans:
                axes.barh(
                    height, end - start, left=start, height=0.6, color=colors[what], alpha=0.75,
                    edgecolor=INK, linestyle="-" if kind == "measured" else "--",
                    label=what,
                )  # fmt: skip
        handles = {bar.get_label(): bar for bar in axes.containers}
        axes.legend(handles.values(), handles, frameon=False, loc="center left",
                    bbox_to_anchor=(1, 0.5))  # fmt: skip
        axes.set_yticks(range(len(lanes)), list(lanes))
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set(xlabel=f"milliseconds, {kind}", title=title)
    return chart


def _say(title, ylabel, xlabel, measured, modelled) -> str:
    """The title, then the numbers that the picture shows."""
    said = [title.rstrip(".")]
    for kind, runs in (("measured", measured), ("modelled", modelled)):
        for name, values in runs.items():
            if isinstance(values, dict):
                values = ", ".join(
                    f"{_number(y)} at {_number(x)} {xlabel}" for x, y in sorted(values.items())
                )
            else:
                values = _number(values)
            said.append(f"{name}, {kind} {ylabel}: {values}")
    return ". ".join(said) + "."


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _colors(n: int) -> list[str]:
    return [DEVICE_COLORS[i % len(DEVICE_COLORS)] for i in range(n)]
