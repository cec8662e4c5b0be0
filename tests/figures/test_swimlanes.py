"""Ranks in lanes: each picture against what runs, and what is drawn against its rows."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from bs4 import BeautifulSoup
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel, _functions
from torch.utils.data import DataLoader, DistributedSampler

from d2lmgpu.collectives.schedules import plan
from d2lmgpu.figures.checks import FigureError
from d2lmgpu.figures.style import number
from d2lmgpu.figures.swimlane_pictures import (
    data_parallel_beside_ddp,
    micro_batches,
    processes,
    sampler_places,
)
from d2lmgpu.launch import launch
from d2lmgpu.records import store

TWO_HOSTS = [(f"host {rank // 4}", rank, rank % 4, 8) for rank in range(8)]
HANDED_OUT = [[[(1, True), (2, True)], [(3, True)]], [[(0, True), (4, True)], [(1, False)]]]
LOGS = {"each": [["forward", 8, "forward", 8]] * 2, "once": [["forward", "forward", 6, 2]] * 2}
SHOWN = {
    "sampler": lambda: sampler_places(HANDED_OUT),
    "micro-batches": lambda: micro_batches(LOGS),
    "processes": lambda: processes(TWO_HOSTS),
    "DataParallel": lambda: data_parallel_beside_ddp(1000, 400, 80),
}
EVERY = pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)


def drawn(picture):
    """Its SVG elements, one for each panel."""
    pictures = BeautifulSoup(picture.html, "html.parser").select("svg")
    return [ElementTree.fromstring(str(svg)) for svg in pictures]


def texts(element):
    return [text.text for text in element.iter("text")]


@EVERY
def test_each_row_is_drawn_with_all_that_it_has_and_said(shown):
    picture = shown()
    data = json.loads(BeautifulSoup(picture.html, "html.parser").script.string)
    for panel, svg, words_of in zip(picture.panels, drawn(picture), data["panels"], strict=True):
        rows = [group for group in svg.iter("g") if group.get("data-row")]
        assert [group.get("data-row") for group in rows] == [*map(str, range(len(panel.rows)))]
        assert words_of == {"name": panel.name, "words": [row.words for row in panel.rows]}
        assert svg.get("aria-label") == f"{panel.name}. {' '.join(words_of['words'])}"
        assert svg.get("aria-label") in repr(picture)
        for row, group in zip(panel.rows, rows, strict=True):
            written = [row.title, *(cell.text for cell in row.cells if cell), row.meeting]
            assert texts(group) == [text for text in written if text]
            sends = [part.get("data-send") for part in group if part.get("data-send")]
            assert sends == [f"{source} {target}" for source, target, _ in row.sends]
            copies = [box for box in group.iter("rect") if box.get("stroke-dasharray")]
            assert len(copies) == sum(cell.is_copy for cell in row.cells if cell)


@EVERY
def test_rows_lie_one_below_the_other_and_nothing_lies_outside(shown):
    for svg in drawn(shown()):
        _, _, width, height = map(float, svg.get("viewbox").split())
        below = 0
        for group in (group for group in svg.iter("g") if group.get("data-row")):
            boxes = [
                {name: float(box.get(name)) for name in ("x", "y", "width", "height")}
                for box in group.iter("rect")
            ]
            title = float(next(group.iter("text")).get("y"))
            assert title - 11 >= below
            below = max([title, *(box["y"] + box["height"] for box in boxes)])
            assert all(box["y"] > title for box in boxes)
            assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        assert below < height


@pytest.mark.parametrize(("n", "ranks", "batch"), [(7, 3, 2), (8, 4, 1), (5, 2, 2), (9, 4, 3)])
def test_the_sampler_deals_the_common_order_row_by_row(n, ranks, batch):
    """Read by rows, the boxes are the order of one process; dashed are the places from n on."""
    handed_out = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(n), ranks, rank, seed=3)
        loader = DataLoader(range(n), batch, sampler=sampler)
        places = iter(range(rank, n + ranks, ranks))
        handed_out.append([[(i, next(places) < n) for i in taken.tolist()] for taken in loader])
    rows = sampler_places(handed_out).panels[0].rows
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3)).tolist()
    cells = [cell for row in rows for cell in row.cells]
    taken = [int(cell.text.split(",")[0]) for cell in cells]
    assert taken == (order + order)[: len(taken)]
    assert [cell.is_copy for cell in cells] == [place >= n for place in range(len(taken))]
    assert sum(row.words.count("a copy") for row in rows) == len(taken) - n


def log_of_this_rank(quiet):
    """Forward passes and messages of four micro-batches; if quiet, three within no_sync."""
    net, log = DistributedDataParallel(nn.Linear(3, 2)), []

    def counting(log, bucket):
        log.append(bucket.buffer().nbytes)
        total = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return total.then(lambda future: future.value()[0])

    net.register_comm_hook(log, counting)
    net.register_forward_pre_hook(lambda *_: log.append("forward"))

    def backward():
        net(torch.ones(1, 3)).sum().backward()

    if not quiet:
        for _ in range(4):
            backward()
        return log
    with net.no_sync():
        for _ in range(3):
            backward()
    backward()
    return log


def test_bars_are_where_ddp_sends():
    logs = {quiet: launch(log_of_this_rank, quiet, num_processes=2) for quiet in (False, True)}
    always, once = micro_batches({"always": logs[False], "once": logs[True]}).panels
    sent = "allreduce, 32 bytes"  # eight numbers of four bytes
    assert [row.meeting for row in always.rows] == [sent] * 4
    assert [row.meeting for row in once.rows] == ["", "", "", sent]
    assert [row.words.endswith("Nothing is sent.") for row in once.rows] == [True] * 3 + [False]
    assert "nothing" in once.rows[0].title and "nothing" not in always.rows[0].title


def test_several_messages_of_one_micro_batch_are_added_up():
    *_, last = micro_batches(LOGS).panels[1].rows
    assert last.meeting == "allreduce, 8 bytes" and "2 messages, 8 bytes" in last.words


def test_processes_are_framed_by_their_host_in_the_order_of_their_ranks():
    """As launch told four processes on two hosts, in a record."""
    met = store.read(store.FOLDER / "cpu-2-cores-hosts.json")["met"]
    processes_of_launch = [(host, *map(int, numbers[:3])) for numbers, host, _ in met]
    picture = processes(processes_of_launch[::-1])
    (panel,) = picture.panels
    assert panel.hosts == ("n1", "n2")
    assert [[cell.text for cell in row.cells] for row in panel.rows] == [
        ["0", "1", "2", "3"],
        ["0", "1", "0", "1"],
        ["4"] * 4,
        ["0", "1", "0", "1"],
    ]
    assert panel.rows[1].words == "The local ranks: on n1 0, 1; on n2 0, 1."


def test_dataparallel_calls_in_the_order_of_the_picture(monkeypatch):
    """PyTorch's own ``forward``, with calls that only note that they came."""
    calls = []
    net = nn.DataParallel(nn.Linear(3, 2))
    net.device_ids, net.src_device_obj, net.output_device = [0, 1], torch.device("cpu"), 0
    for name in ("scatter", "replicate", "parallel_apply", "gather"):

        def noted(*given, name=name):
            calls.append(name)
            return ([1, 2], [{}, {}]) if name == "scatter" else given

        monkeypatch.setattr(net, name, noted)
    net(torch.ones(4, 3))
    rows = data_parallel_beside_ddp(1000, 400, 80).panels[0].rows
    assert [row.title.split(":")[0] for row in rows[:4]] == calls


def test_its_backward_pass_sends_the_other_way(monkeypatch):
    """What gathered outputs scatters their gradients, what copied parameters adds theirs up."""
    undone = []
    for name in ("Scatter", "ReduceAddCoalesced"):
        function = SimpleNamespace(apply=lambda *given, name=name: undone.append(name) or (None,))
        monkeypatch.setattr(_functions, name, function)
    gathered = SimpleNamespace(
        input_gpus=(0, 1), input_sizes=(2, 2), dim=0, unsqueezed_scalar=False
    )
    _functions.Gather.backward(gathered, torch.ones(4, 2))
    copied = SimpleNamespace(input_device=0, num_inputs=1)
    _functions.Broadcast.backward(copied, torch.ones(2), torch.ones(2))
    assert undone == ["Scatter", "ReduceAddCoalesced"]
    rows = data_parallel_beside_ddp(1000, 400, 80).panels[0].rows
    sends = [[(source, target) for source, target, _ in row.sends] for row in rows]
    from_0, to_0 = [(0, 1), (0, 2), (0, 3)], [(1, 0), (2, 0), (3, 0)]
    assert sends == [from_0, from_0, [], to_0, [], from_0, [], to_0, []]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_bytes_are_those_of_the_formula_and_of_the_ring(k):
    params, inputs, outputs = 1200, 480, 96
    parallel, ddp = data_parallel_beside_ddp(params, inputs, outputs, k).panels
    through_0 = sum(size for row in parallel.rows for *_, size in row.sends)
    others = (k - 1) / k
    forward = (k - 1) * params + others * (inputs + outputs)
    assert through_0 == forward + others * outputs + (k - 1) * params
    most = max(plan("ring", k, params // 4).bytes_sent(4))
    (row,) = (row for row in ddp.rows if row.meeting)
    size = f"{number(most / 1000)} kB" if most >= 1000 else f"{most} bytes"
    assert row.meeting == f"allreduce, {size} from each" and size in row.words
    assert not any(row.sends for row in ddp.rows)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        [[]],
        [HANDED_OUT[0]],
        HANDED_OUT * 3,
        [HANDED_OUT[0], HANDED_OUT[1][:1]],
        [[[1, 2]], [[3, 4]]],
        [[[("a", True)]], [[(1, True)]]],
    ],
)
def test_what_no_sampler_hands_out_is_refused(wrong):
    with pytest.raises(FigureError):
        sampler_places(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"a": []},
        {"a": [["forward"]]},
        {"a": [[8, "forward"]] * 2},
        {"a": [["forward", 8], ["forward"]]},
        {"a": [["back"]] * 2},
        {"a": [["forward", -1]] * 2},
        {"a": [["forward"]] * 2, "b": [["forward"] * 2] * 2},
    ],
)
def test_logs_of_ranks_that_do_not_send_alike_are_refused(wrong):
    with pytest.raises(FigureError):
        micro_batches(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        TWO_HOSTS[:1],
        TWO_HOSTS[:7],
        TWO_HOSTS * 2,
        [(0, 0, 0, 2), (0, 1, 1, 2)],
        [("a", 0, 0, 2), ("a", "1", 1, 2)],
        [("a", 0, 0), ("a", 1, 1)],
        [("a", 0, 0, 4), ("b", 1, 0, 4), ("a", 2, 1, 4), ("b", 3, 1, 4)],
    ],
)
def test_what_is_told_to_no_processes_is_refused(wrong):
    with pytest.raises(FigureError):
        processes(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        (0, 1, 1),
        (1.5, 1, 1),
        (1, None, 1),
        (1, 1, "1"),
        (1, 1, 1, 1),
        (1, 1, 1, 5),
        (1, 1, 1, True),
    ],
)
def test_what_is_no_step_of_dataparallel_is_refused(wrong):
    with pytest.raises(FigureError):
        data_parallel_beside_ddp(*wrong)
