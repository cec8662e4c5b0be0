"""Charts: what is drawn, how, and what a reader who cannot see it is told."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from d2lmgpu.collectives.schedules import plan
from d2lmgpu.figures import charts, diagrams, shards
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.style import COLORS, GRAY

MEASURED = {"LeNet": {1: 1, 2: 1.8}}
MODELLED = {"LeNet": {1: 1, 2: 1.9, 4: 3.5}, "ResNet": {1: 1, 2: 2, 4: 3.9}}
MAKE = {
    "split_data": lambda: diagrams.split_data(2),
    "split_layers": lambda: diagrams.split_layers(3),
    "split_model": lambda: diagrams.split_model(4),
    "scaling": lambda: charts.scaling(MEASURED, MODELLED, "Small models stop scaling early"),
    "costs": lambda: charts.costs({"tree": {1: 2, 9: 3}, "ring": {9: 1, 1: 4}}, "P", "bytes", "s"),
    "holdings": lambda: diagrams.holdings(plan("ring", 3, 6)),
    "columns_then_rows": lambda: shards.columns_then_rows(3, [(4, 3), (4, 5)], [(3, 4), (5, 4)]),
    "traffic": lambda: diagrams.traffic([plan("ring", 3, 6), plan("host", 3, 6)]),
    "timeline": lambda: charts.timeline({"GPU 0": [(0, 2.5, "compute"), (3, 4, "send")]}, "P"),
    "bars": lambda: charts.bars({"a": 1.5}, {"a": 2, "b": 3}, 'Two "GPUs" < one', "s"),
}


def cells(axes):
    """The matrix that is drawn there."""
    (mesh,) = axes.collections
    rows, columns, _ = mesh.get_coordinates().shape
    return mesh.get_array().reshape(rows - 1, columns - 1)


def curves(chart):
    return {line.get_label(): line for line in chart.axes[0].lines}


@pytest.mark.parametrize("name", MAKE)
def test_a_chart_is_a_figure_and_its_picture_speaks(name):
    chart = MAKE[name]()
    assert isinstance(chart, Figure)
    picture = ElementTree.fromstring(chart._repr_html_())
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == chart.alt != ""
    assert "None" not in chart.alt


@pytest.mark.parametrize("name", MAKE)
def test_a_picture_takes_the_page_s_ground_and_ink(name):
    picture = MAKE[name]().svg()
    named = {color.upper() for color in re.findall(r"(?<![\w(\"])#[0-9a-fA-F]{6}", picture)}
    assert named <= {*map(str.upper, COLORS), GRAY} and not re.search(r"white|black", picture)
    assert "currentColor" in picture


@pytest.mark.parametrize("name", MAKE)
def test_the_same_chart_is_the_same_picture(name):
    assert MAKE[name]().svg() == MAKE[name]().svg()


def test_measured_is_solid_and_modelled_is_dashed():
    lines = curves(MAKE["scaling"]())
    assert lines["LeNet, measured"].get_linestyle() == "-"
    assert lines["LeNet, modelled"].get_linestyle() == "--"
    assert lines["LeNet, measured"].get_color() == lines["LeNet, modelled"].get_color()
    assert lines["LeNet, modelled"].get_color() != lines["ResNet, modelled"].get_color()
    measured, modelled = MAKE["bars"]().axes[0].containers
    assert {bar.get_linestyle() for bar in measured} == {"solid"}
    assert {bar.get_linestyle() for bar in modelled} == {"--"}


def test_curves_and_bars_show_the_numbers_and_the_text_says_them():
    chart = charts.scaling({"x": {4: 0.7, 1: 1.0}}, {}, "Point.", "efficiency")
    assert curves(chart)["x, measured"].get_xydata().tolist() == [[1, 1.0], [4, 0.7]]
    assert chart.alt == "Point. x, measured efficiency: 1 at 1 devices, 0.7 at 4 devices."
    assert "x, measured s: 12,345." in charts.bars({"x": 12345.4}, {}, "Point", "s").alt
    chart = MAKE["bars"]()
    lengths = [[bar.get_width() for bar in group] for group in chart.axes[0].containers]
    assert lengths == [[1.5], [2, 3]]
    assert chart.alt.endswith("a, measured s: 1.5. a, modelled s: 2. b, modelled s: 3.")


def held(chart, device, kind):
    """Area that is filled in the device's colour: `kind` is 'batch' (below) or 'layers' (above)."""
    color = COLORS[device].lower()
    return sum(
        patch.get_width() * patch.get_height()
        for patch in chart.axes[0].patches
        if isinstance(patch, diagrams.Rectangle)
        and to_hex(patch.get_facecolor()) == color
        and (patch.get_y() >= diagrams.BOTTOM) == (kind == "layers")
    )


def whole(kind):
    """The same area where one device holds everything."""
    chart = diagrams.split_data(2) if kind == "layers" else diagrams.split_model(2)
    return held(chart, 0, kind)


@pytest.mark.parametrize(
    ("draw", "batch", "layers"),
    [
        (diagrams.split_data, [1 / 2, 1 / 2], [1, 1]),
        (diagrams.split_layers, [1, 0], [1 / 2, 1 / 2]),
        (diagrams.split_model, [1, 1], [1 / 2, 1 / 2]),
    ],
)
def test_what_each_device_holds(draw, batch, layers):
    for device in range(2):
        assert held(draw(2), device, "batch") == pytest.approx(batch[device] * whole("batch"))
        assert held(draw(2), device, "layers") == pytest.approx(layers[device] * whole("layers"))


def test_a_device_has_its_columns_its_rows_and_one_term():
    """Of A and B as many cells as numbers, of X A and GELU(X A) its columns, and a whole term."""
    cells = [to_hex(patch.get_facecolor()) for patch in MAKE["columns_then_rows"]().axes[0].patches]
    for device, units in enumerate((3, 5)):
        numbers = 4 * units + units * 4 + 2 * 3 * units + 3 * 4
        assert cells.count(COLORS[device].lower()) == numbers
    assert len(cells) == sum(4 * n + n * 4 + 2 * 3 * n + 3 * 4 for n in (3, 5)) + 3 * 4  # and X


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([(4, 3)], [(3, 4)]),
        ([(4, 3), (5, 3)], [(3, 4), (3, 5)]),
        ([(4, 3)] * 2, [(3, 4), (4, 4)]),
        ([(4, 3)] * 5, [(3, 4)] * 5),
        ([(4, 7)] * 2, [(7, 4)] * 2),
        ([(4, 3)] * 2, [(3, 4)]),
    ],
)
def test_shards_that_do_not_fit_together_are_refused(columns, rows):
    with pytest.raises(FigureError, match=r"(columns|rows) is"):
        shards.columns_then_rows(3, columns, rows)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_a_picture_of_too_few_or_too_many_devices_is_refused(k):
    with pytest.raises(ValueError, match=f"k is {k}: give 2 to 4 devices"):
        diagrams.split_data(k)


def test_drawing_never_imports_pyplot():
    code = (
        "from d2lmgpu.figures import charts, diagrams; diagrams.split_data().svg();"
        "import sys; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib.pyplot" not in run.stdout.split()
    assert "d2lmgpu.figures.charts" in run.stdout.split()


def test_costs_are_modelled_so_they_are_dashed_and_in_order():
    lines = curves(MAKE["costs"]())
    assert {line.get_linestyle() for line in lines.values()} == {"--"}
    assert lines["ring"].get_xydata().tolist() == [[1, 4], [9, 1]]
    assert MAKE["costs"]().axes[0].get_ylabel() == "s, modelled"
    alt = charts.costs({"ring": {1: 4, 5000: 2, 9000: 1}}, "P", "bytes", "s").alt
    assert alt == "P. ring, modelled s: 4 at 1 bytes, 1 at 9,000 bytes."  # the ends are enough


def test_costs_may_have_measured_points_and_marks_on_linear_axes():
    chart = charts.costs({"law": {1: 4.0, 2: 1.0}}, "P", "n", "s", {"law": {2: 1.5, 1: 3.0}})
    lines = curves(chart)
    assert lines["law, measured"].get_xydata().tolist() == [[1, 3.0], [2, 1.5]]
    assert [lines[f"law, {k}"].get_linestyle() for k in ("measured", "modelled")] == ["-", "--"]
    assert lines["law, measured"].get_color() == lines["law, modelled"].get_color()
    assert chart.axes[0].get_ylabel() == "s" and chart.axes[0].get_xscale() == "log"
    assert "law, measured s: 3 at 1 n, 1.5 at 2 n" in chart.alt
    marks = {"chosen": (1, 4.0), "best": (2, 1.0)}
    chart = charts.costs({"law": {1: 4.0, 2: 1.0}}, "P", "n", "s", marks=marks, scale="linear")
    assert curves(chart)["best"].get_xydata().tolist() == [[2, 1.0]]
    assert chart.axes[0].get_yscale() == "linear" and chart.axes[0].get_ylim()[0] == 0
    assert chart.alt.endswith("chosen: 4 at 1 n. best: 1 at 2 n.")


@pytest.mark.parametrize("algorithm", ["naive", "host", "sharded", "tree", "ring", "hierarchical"])
def test_holdings_show_how_sums_grow_until_every_device_has_all(algorithm):
    schedule = plan(algorithm, 5, 10)
    chart = diagrams.holdings(schedule)
    assert len(chart.axes) == schedule.num_rounds + 1
    panels = [*map(cells, chart.axes)]
    assert (panels[0][:5] == 1).all() and (panels[-1][:5] == 5).all()
    assert all((after.max() <= 5) for after in panels)
    assert not any((panel[:5] == 5).all() for panel in panels[:-1])
    assert chart.alt.endswith(
        f"After round {schedule.num_rounds - 1}: 50 of 50 numbers are complete."
    )


@pytest.mark.parametrize(("kind", "style"), [("measured", "-"), ("modelled", "--")])
def test_a_timeline_says_what_was_when_and_whether_it_was_measured(kind, style):
    spans = {"GPU 0": [(0, 2.5, "compute"), (3, 4, "send")], "GPU 1": [(0, 2, "compute")]}
    chart = charts.timeline(spans, "Point", kind)
    assert "GPU 0: compute from 0 to 2.5 ms, send from 3 to 4 ms. GPU 1: compute" in chart.alt
    assert kind in chart.alt and kind in chart.axes[0].get_xlabel()
    bars = [bar for group in chart.axes[0].containers for bar in group]
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0, 2.5), (3, 1), (0, 2)]
    assert {bar.get_linestyle() for bar in bars} <= {style, "solid" if style == "-" else style}
    legend = [text.get_text() for text in chart.legends[0].get_texts()]
    assert legend == ["compute", "send"]


def test_a_long_timeline_is_in_seconds():
    spans = {"n1": [(0, 2500, "trains"), (2500, 40_000, "wait")]}
    chart = charts.timeline(spans, "Point", "measured")
    assert "trains from 0 to 2.5 s, wait from 2.5 to 40 s" in chart.alt
    assert "The longest gap is 37.5 s" in chart.alt
    assert chart.axes[0].get_xlabel() == "seconds, measured"
    assert max(bar.get_width() for group in chart.axes[0].containers for bar in group) == 37.5
    assert [text.get_text() for text in chart.axes[0].texts] == ["37.5 s"]


def test_traffic_shows_the_bytes_of_every_link_and_names_the_busiest():
    chart = MAKE["traffic"]()
    ring, host = map(cells, chart.axes)
    # In 4 rounds each device of the ring passes on a part: 2 elements of 4 bytes.
    assert ring.tolist() == [[0, 32, 0], [0, 0, 32], [32, 0, 0]]
    assert host.tolist() == [[0, 0, 0, 24]] * 3 + [[24, 24, 24, 0]]
    assert chart.alt == (
        "Traffic on the links of 3 devices. ring: 3 links, 0.032 kB over the busiest. "
        "host: 6 links, 0.024 kB over the busiest."
    )


def test_a_timeline_without_lanes_is_refused():
    with pytest.raises(FigureError, match=r"lanes is \{\}: give"):
        charts.timeline({}, "Point")


def test_a_band_of_runs_of_unlike_lengths_is_refused():
    with pytest.raises(FigureError, match=r"'a'.*2, 3"):
        charts.bands({"a": [[0.1, 0.2], [0.1, 0.2, 0.3]]}, "P", "epoch", "accuracy")
    chart = charts.bands({"a": [[0.1, 0.2]] * 2, "b": [[0.3]]}, "P", "epoch", "accuracy")
    assert [len(line.get_xdata()) for line in chart.axes[0].lines] == [2, 1]


NAN, INF = float("nan"), float("inf")
DIVERGING = {
    "scaling": lambda y: charts.scaling({"x": {1: 1.0, 2: y, 4: 3.0}}, {}, "P", "seconds"),
    "bars": lambda y: charts.bars({"a": 1.0, "b": y}, {"b": 2.0}, "P", "loss"),
    "bands": lambda y: charts.bands({"x": [[1, 2, 3], [1, y, 2]]}, "P", "epoch", "loss"),
    "costs": lambda y: charts.costs({"x": {1: 1.0, 2: y}}, "P", "n", "s", {"x": {1: 2.0, 3: y}}),
}


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("chart", DIVERGING)
@pytest.mark.filterwarnings("error")
def test_what_is_not_finite_is_a_gap_that_is_marked(chart, value):
    picture = DIVERGING[chart](value).svg()
    marks = 2 if chart == "costs" else 1
    assert picture.count(">diverged</text>") == marks
    label = ElementTree.fromstring(picture).get("aria-label")
    assert "nan" not in label and "inf" not in label
    assert "diverged" in label or chart == "bands"  # which tells the last step alone


@pytest.mark.parametrize("chart", DIVERGING)
def test_what_is_finite_is_not_marked(chart):
    assert "diverged" not in DIVERGING[chart](2.0).svg()


@pytest.mark.parametrize("chart", DIVERGING)
def test_an_array_of_one_number_is_a_number(chart):
    import numpy as np
    import torch

    for scalar in (np.array(1.5), torch.tensor(1.5), np.float32(1.5)):
        assert DIVERGING[chart](scalar).svg() == DIVERGING[chart](1.5).svg()


@pytest.mark.parametrize("wrong", [None, "1", [1.0], True])
def test_what_is_no_number_is_refused(wrong):
    for chart in ("scaling", "bars", "costs"):
        with pytest.raises(FigureError):
            DIVERGING[chart](wrong)
