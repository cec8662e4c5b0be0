"""The charts of the course, in one style; `diagrams` has the pictures of how things work.

Each function returns a `Chart`, which tells its points to the pointer and carries `alt`, a text
that says what it shows.
Measured is drawn solid, modelled dashed. What cannot be drawn is a FigureError; a value that is not
finite is a gap, marked "diverged", and an array of one number is a number.
"""

from functools import partial
from itertools import cycle
from math import isfinite, isnan, nan
from statistics import median
from textwrap import fill as wrap

from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from d2lmgpu.figures.chart import DRAWN_INK, WIDTH, Chart, styled
from d2lmgpu.figures.checks import is_curve, is_named, is_series, is_span, need
from d2lmgpu.figures.divergence import DIVERGED, finite, gaps, is_number, plain
from d2lmgpu.figures.divergence import mark as mark_diverged
from d2lmgpu.figures.gaps import WAIT, longest_gap, mark
from d2lmgpu.figures.style import COLORS, GRAY, number
from d2lmgpu.machine.checks import is_real

TITLE, LANE = 46, 16  # letters in a line of a title, and of what stands beside a bar
KINDS = ("measured", "simulated", "modelled")
LONG = 10_000  # milliseconds, which are read better in seconds


@styled
def scaling(measured: dict, modelled: dict, title: str, ylabel: str = "speedup") -> Chart:
    """Curves over the number of devices: measured solid, modelled dashed.

    measured, modelled: name of the run -> {number of devices: value}; a name that is in both has
    one colour. title says the point. For speedups, the ideal (value = devices) is drawn dotted.
    """
    kinds = {"measured": plain(measured), "modelled": plain(modelled)}
    _need_curves(kinds, lambda k: is_real(k) and k > 0, "{name: {number of devices: value}}")
    facts = _facts(kinds, ylabel, "devices")
    chart, axes = _chart(title, facts, 3.2, xlabel="devices", ylabel=ylabel)
    ticks = sorted({k for curves in kinds.values() for curve in curves.values() for k in curve})
    if ylabel == "speedup":
        axes.plot(ticks, ticks, ":", color=GRAY, label="ideal")
    _plot(chart, kinds)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, map(str, ticks))
    if ylabel == "speedup":
        axes.set_yscale("log", base=2)
        axes.set_yticks(ticks, map(str, ticks))
    axes.minorticks_off()
    chart.legend_below()
    return chart


@styled
def bars(measured: dict, modelled: dict, title: str, ylabel: str) -> Chart:
    """A row a name: measured as a filled bar, modelled as a dashed outline.

    measured, modelled: name of the row -> value; either may lack a name. title says the point.
    """
    measured, modelled = plain(measured), plain(modelled)
    kinds = {"measured": measured, "modelled": modelled}
    for kind, groups in kinds.items():
        need(is_named(groups, is_number), kind, groups, "{name: number}")
    facts, names = _facts(kinds, ylabel), list(measured | modelled)
    chart, axes = _chart(title, facts, 0.9 + 0.5 * len(names), xlabel=ylabel)
    outline = dict(facecolor="none", edgecolor=DRAWN_INK, linestyle="--", linewidth=1.2)
    looks = {"measured": dict(color=COLORS[0], height=0.38), "modelled": outline}
    for (kind, groups), offset in zip(kinds.items(), (-0.2, 0.2)):
        if groups:
            at = [names.index(name) + offset for name in groups]
            lengths = gaps(groups.values())
            drawn = axes.barh(at, lengths, label=kind, **{"height": 0.36} | looks[kind])
            ends = zip(lengths, at, groups.items())
            points = [((0, x), y, name, number(value)) for x, y, (name, value) in ends]
            chart.add_readings(kind, drawn, [point for point in points if isfinite(point[0][1])])
            for x, y in zip(lengths, at):
                if isnan(x):
                    axes.text(0, y, DIVERGED, va="center")
    axes.set_yticks(range(len(names)), map(_wrapped, names))
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_axisbelow(True)
    chart.legend_below()
    return chart


@styled
def bands(curves: dict, title: str, xlabel: str, ylabel: str) -> Chart:
    """Several runs of each setting: the median as a line, from least to most as a band.

    curves: name -> runs, each a list of values, one a step from 1 on; all measured, of one length.
    """
    curves = plain(curves)
    good = is_named(curves, partial(is_series, is_one=partial(is_series, is_one=is_number)))
    need(good, "curves", curves, "{name: [[number, …], …]}")
    for name, runs in curves.items():
        steps = sorted({len(run) for run in runs})
        need(
            len(steps) == 1,
            f"The length of the runs of {name!r}",
            steps,
            "runs of one length, or each length a name of its own",
        )
    of_steps = {  # where one of the runs is not finite, nothing is known of all of them
        name: [step if all(map(isfinite, step)) else (nan,) for step in zip(*runs)]
        for name, runs in curves.items()
    }
    medians = {name: [median(step) for step in steps] for name, steps in of_steps.items()}
    last = ", ".join(f"{name} {_in_words(values[-1], '.2f')}" for name, values in medians.items())
    facts = [f"Median {ylabel} at the last {xlabel}: {last}"]
    chart, axes = _chart(title, facts, 3, xlabel=xlabel, ylabel=ylabel)
    marked = []
    for (name, values), color in zip(of_steps.items(), cycle(COLORS)):
        steps = range(1, len(values) + 1)
        least, most = ([limit(step) for step in values] for limit in (min, max))
        band = axes.fill_between(steps, least, most, alpha=0.2, color=color)
        drawn = axes.plot(steps, medians[name], "o-", color=color, label=name)
        ends = [f"{number(low)} to {number(high)}" for low, high in zip(least, most)]
        points = [
            (x, y, f"{xlabel} {x}", f"{number(y)} ({between})")
            for x, y, between in zip(steps, medians[name], ends)
        ]
        chart.add_readings(name, [band, *drawn], finite(points))
        marked.append((steps, medians[name], color))
    mark_diverged(axes, marked)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    chart.legend_below()
    return chart


@styled
def costs(
    modelled: dict, title: str, xlabel: str, ylabel: str, measured=None, marks=None, scale="log"
) -> Chart:
    """Curves of a cost: modelled dashed, measured as dots on a solid line, name -> {x: y} each.

    A name that is in both has one colour. marks: label -> (x, y) on the modelled curves. scale is
    that of both axes, "log" or "linear" (then from 0 up). title says the point.
    """
    kinds = {"measured": {} if measured is None else plain(measured), "modelled": plain(modelled)}
    marks = {} if marks is None else plain(marks)
    _need_curves(kinds, is_real, "{name: {x: y}}")
    good = is_named(marks, lambda at: is_series(at) and len(at) == 2)
    need(good, "marks", marks, "{label: (x, y)}")
    need.choice("scale", scale, ("log", "linear"))
    ends = {
        kind: {name: {x: of[x] for x in (min(of), max(of))} for name, of in curves.items()}
        for kind, curves in kinds.items()
    }
    facts = [f"{name}: {number(y)} at {number(x)} {xlabel}" for name, (x, y) in marks.items()]
    facts = [*_facts(ends, ylabel, xlabel), *facts]
    label = ylabel if measured else f"{ylabel}, modelled"
    chart, axes = _chart(title, facts, 3.2, xlabel=xlabel, ylabel=label)
    _plot(chart, kinds, say_kind=bool(measured))
    for (label, at), marker in zip(marks.items(), cycle("oD")):
        axes.plot(*at, marker, color=DRAWN_INK, fillstyle="none", markersize=9, label=label)
    axes.set(xscale=scale, yscale=scale)
    if scale == "linear":
        axes.set_ylim(bottom=0)
    else:  # Matplotlib's powers of ten have exponents in small letters
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(numticks=6))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    chart.legend_below()
    return chart


@styled
def timeline(lanes: dict, title: str, kind: str = "modelled", gap: str | None = None) -> Chart:
    """What each lane does when: name -> [(start, end, what)], in milliseconds.

    Where a span ends after `LONG`, the axis and all times are in seconds. kind is "measured" (drawn
    solid), "simulated" or "modelled" (dashed). title says the point. Spans called "wait" are
    hatched. The longest of them is marked with its time, or the longest pause between two spans of
    the lane ``gap``, if that is longer.
    """
    good = is_named(lanes, partial(is_series, is_one=is_span)) and len(lanes) > 0
    need(good, "lanes", lanes, "{lane: [(start, end, what), …]} with start up to end")
    need.choice("kind", kind, KINDS)
    unit, name = "ms", "milliseconds"
    if any(end > LONG for spans in lanes.values() for _, end, _ in spans):
        unit, name = "s", "seconds"
        lanes = {
            lane: [(start / 1000, end / 1000, what) for start, end, what in spans]
            for lane, spans in lanes.items()
        }
    facts = [
        f"{lane}: " + ", ".join(f"{what} from {a:.3g} to {b:.3g} {unit}" for a, b, what in spans)
        for lane, spans in lanes.items()
    ]
    marked = longest_gap(lanes, gap)
    facts += [f"The longest gap is {marked.length:.3g} {unit}, of {marked.lane}"] if marked else []
    chart, axes = _chart(
        title, facts, 0.9 + 0.45 * len(lanes), note=f" ({kind})", xlabel=f"{name}, {kind}"
    )
    whats = dict.fromkeys(what for spans in lanes.values() for _, _, what in spans)
    colors = dict(zip((what for what in whats if what != WAIT), cycle(COLORS)))
    line = "-" if kind == "measured" else "--"
    look = dict(height=0.6, alpha=0.75, edgecolor=DRAWN_INK, linestyle=line)
    drawn = {}
    for height, (lane, spans) in enumerate(lanes.items()):
        for start, end, what in spans:
            fill = dict(color="none", hatch="////") if what == WAIT else dict(color=colors[what])
            drawn[what] = axes.barh(height, end - start, left=start, **fill | look)
            points = [((start, end), height, f"{lane}, {start:.3g} to {end:.3g} {unit}", "")]
            chart.add_readings(what, drawn[what], points)
    if marked:
        mark(axes, marked, list(lanes).index(marked.lane), DRAWN_INK, unit)
    chart.legend_below(drawn.values(), drawn)
    axes.set_yticks(range(len(lanes)), map(_wrapped, lanes))
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    return chart


def _wrapped(name) -> str:
    """A name in lines that have room beside a bar."""
    return wrap(str(name), LANE)


def _need_curves(kinds, is_x, allowed) -> None:
    """FigureError unless there are named curves of each kind, none of them empty."""
    for kind, curves in kinds.items():
        good = is_named(curves, lambda curve: is_curve(curve, is_x, is_number) and curve)
        need(good, kind, curves, allowed)


def _facts(kinds, ylabel, xlabel=None):
    """A sentence a name of each kind: its number, or those of its curve."""
    for kind, values in kinds.items():
        for name, value in values.items():
            points = sorted(value.items()) if isinstance(value, dict) else []
            words = [f"{_in_words(y)} at {number(x)} {xlabel}" for x, y in points]
            yield f"{name}, {kind} {ylabel}: {', '.join(words or [_in_words(value)])}"


def _in_words(value, digits=None):
    if not isfinite(value):
        return DIVERGED
    return number(value) if digits is None else f"{value:{digits}}"


def _chart(title, facts, height, note="", **labels):
    """A chart and its axes; its text alternative is the title, a ``note`` on it and the facts."""
    for name, text in {"title": title, **labels}.items():
        need(isinstance(text, str), name, text, "a text")
    chart = Chart(". ".join([title.rstrip(".") + note, *facts]) + ".", WIDTH, height)
    axes = chart.subplots()
    chart.suptitle(wrap(title, TITLE), fontsize=11)
    axes.set(**labels)
    return chart, axes


def _plot(chart, kinds, say_kind=True) -> None:
    """Draw the curves, one colour a name: measured as dots on a line, modelled dashed."""
    (axes,) = chart.axes
    names = dict.fromkeys(name for curves in kinds.values() for name in curves)
    marked = []
    for name, color in zip(names, cycle(COLORS)):
        for (kind, curves), style in zip(kinds.items(), ("o-", "--")):
            if name in curves:
                label = f"{name}, {kind}" if say_kind else name
                points = sorted(curves[name].items())
                xs, ys = zip(*points)
                drawn = axes.plot(xs, gaps(ys), style, color=color, label=label)
                points = [(x, y, f"{axes.get_xlabel()} {number(x)}", number(y)) for x, y in points]
                chart.add_readings(label, drawn, finite(points))
                marked.append((xs, ys, color))
    mark_diverged(axes, marked)
