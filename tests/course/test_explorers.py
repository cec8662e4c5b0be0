"""What the chapters' explorers say, against published numbers and counts made by hand."""

import json
import re
from itertools import product
from math import ceil, log2

import pytest
from bs4 import BeautifulSoup

from d2lmgpu.costmodel.fit import MACHINES, fit_small
from d2lmgpu.costmodel.model import PRESETS, exposed_seconds, step
from d2lmgpu.course import explorers
from d2lmgpu.figures import svg


class Page:
    """An explorer's page without a browser: asked by what its controls say."""

    def __init__(self, explorer):
        soup = BeautifulSoup(explorer.html, "html.parser")
        data = json.loads(soup.select_one("script").string)
        self.lines, self.answers = data["lines"], data["answers"]
        self.choices = {
            label.contents[0].strip(): json.loads(label.input["data-texts"])
            if label.input
            else [option.string for option in label.select("option")]
            for label in soup.select("label")
        }

    def ask(self, *chosen):
        """The answer as soup."""
        at = 0
        for options, text in zip(self.choices.values(), chosen, strict=True):
            at = at * len(options) + options.index(text)
        if self.answers[at] is None:
            return None
        return BeautifulSoup("\n".join(self.lines[i] for i in self.answers[at]), "html.parser")


@pytest.fixture(scope="module")
def cost():
    return Page(explorers.cost())


OWN = "the machine's own"


def words(soup):
    return " ".join(soup.get_text().split())


def number(text, pattern):
    return float(re.search(pattern, text)[1].replace(",", ""))


LENET, ALEXNET = "LeNet, D2L's loop in MXNet: V100", "AlexNet, MXNet: K80"
H100 = "a language model, 16 bit: H100"
EACH, IN_ALL = (("of each GPU", "as published"), ("of all GPUs", "as published"))


def test_lenet_is_slower_on_two_gpus_and_published_to_be_so(cost):
    """2.5 against 1.8 seconds an epoch: D2L one-day course, 2019."""
    answer = cost.ask(LENET, OWN, *IN_ALL, "2")
    text = words(answer)
    assert number(text, r"Speedup: ([\d.]+\d)") < 1
    assert number(text, r"published: ([\d.]+) on 2 GPUs") == pytest.approx(1.8 / 2.5, abs=1e-3)


def test_the_published_run_on_one_gpu_is_what_the_model_starts_from(cost):
    answer = cost.ask(ALEXNET, OWN, *EACH, "1")
    seconds = 512 / 457.07  # MXNet's table: 457.07 images a second on one GPU
    assert number(words(answer), r"takes ([\d.]+) s") == pytest.approx(seconds, rel=5e-3)
    assert "136 on 256 GPUs" in words(answer), "61,938.36 images a second: 135.5 times as many"


def test_published_points_show_only_where_everything_is_as_published(cost):
    ddp = "ResNet-18, 256 images, DDP: RTX 4090"
    measured = {
        (between, batch): "Measured" in words(cost.ask(ddp, between, *batch, "4"))
        for between in (OWN, "10 Gb Ethernet")
        for batch in (EACH, ("of each GPU", "4 times"))
    }
    assert [choice for choice, there in measured.items() if there] == [(OWN, EACH)]


# Every published row of every training on offer: (what is chosen, k, published speedup).
PUBLISHED = [
    (training, IN_ALL if size == base_size and k > min(of) else EACH, k, speedup)
    for training, row in explorers.TRAININGS.items()
    for of in [explorers.published_speedups(*row)]
    for base_size in [of[min(of)][1]]
    for k, (speedup, size) in of.items()
]


@pytest.mark.parametrize(("training", "batch", "k", "speedup"), PUBLISHED)
def test_every_published_row_lies_in_the_band_and_on_the_side_of_the_answer(
    cost, training, batch, k, speedup
):
    """Faster than the fewest GPUs or slower; and within what the answer says to expect."""
    text = words(cost.ask(training, OWN, *batch, f"{k:,}"))
    modelled = number(text, r"Speedup: ([\d.,]*\d)")
    fewest = min(explorers.published_speedups(*explorers.TRAININGS[training]))
    assert (modelled > fewest) == (speedup > fewest)
    if k > fewest:
        assert f" on {k} GPUs" in text, "the row is shown beside the answer"
        low = number(text, r"expect ([\d.,]*\d) to")
        high = number(text, r"expect [\d.,]+ to ([\d.,]*\d)")
        assert low * 0.995 <= speedup <= high * 1.005  # three digits are printed


def test_the_answers_for_h100_do_not_outrun_its_own_row(cost):
    """The Playbook's 256 GPUs have 39 % of the rate a GPU of 8: 100 GPUs' worth."""
    text = words(cost.ask(H100, OWN, *EACH, "256"))
    assert "100 on 256 GPUs" in text
    assert number(text, r"expect ([\d.]+) to") == pytest.approx(100, abs=1)


def test_every_modelled_answer_has_a_band_and_every_training_a_published_row(cost):
    answered = 0
    for training in explorers.TRAININGS:
        for between in explorers.LINKS:
            for batch in product(explorers.SHARED, explorers.TIMES):
                for k in (2, 16, 256):
                    if answer := cost.ask(training, between, *batch, str(k)):
                        text = words(answer)
                        assert "expect" in text or "Choose fewer" in text
                        answered += 1
        assert explorers.published_speedups(*explorers.TRAININGS[training])
    assert answered > 200


def test_the_explorer_opens_where_the_second_gpu_does_not_pay():
    page = BeautifulSoup(explorers.cost().html, "html.parser")
    text = words(page.select_one("[role=status]"))
    assert number(text, r"Speedup: ([\d.]+\d)") < 1 and "2 GPUs pay at none" in text
    assert [slider["aria-valuetext"] for slider in page.select("[type=range]")] == [
        "as published",
        "2",
    ]


@pytest.mark.parametrize("share", explorers.SHARED)
@pytest.mark.parametrize("training", explorers.TRAININGS)
def test_from_the_batch_that_is_told_on_more_gpus_pay(cost, training, share):
    """The speedup that other answers say is above 1 for larger batches, and for no smaller one."""
    row = explorers.TRAININGS[training]
    base = min(explorers.published_speedups(*row).items())[1][1]
    for times, factor in explorers.TIMES.items():
        answer = cost.ask(training, OWN, share, times, "2")
        if not answer or "GPUs pay" not in words(answer):
            continue
        text = words(answer)
        pays = re.search(r"pay from a batch of ([\d.,]+\d)", text)
        faster = number(text, r"Speedup: ([\d.,]*\d)") > 1
        if pays:
            assert faster == (factor * base >= float(pays[1].replace(",", "")))
        else:
            assert faster == ("at all of" in text)


def test_just_below_the_batch_that_is_told_more_gpus_cost_time(cost):
    text = words(cost.ask("ResNet-18, D2L's loop in MXNet: V100", OWN, *IN_ALL, "4"))
    pays = int(number(text, r"4 GPUs pay from a batch of (\d+)"))
    work, machine = fit_small("MXNet 2019")["resnet18"], PRESETS[MACHINES["MXNet 2019"]]
    below, above = (
        [step(work, machine, k, batch).samples_per_second for k in (1, 4)]
        for batch in (pays - 2, pays + 1)
    )
    assert below[1] < below[0] and above[1] > above[0]


def test_a_faster_link_between_machines_never_costs_time(cost):
    for k in ("32", "64", "256"):
        slow, fast = (
            number(words(cost.ask(ALEXNET, link, *EACH, k)), r"Speedup: ([\d.,]+\d)")
            for link in ("10 Gb Ethernet", "400 Gb Ethernet")
        )
        assert slow < fast <= int(k)


def test_one_process_does_not_drive_several_machines(cost):
    answer = cost.ask(LENET, OWN, *IN_ALL, "16")
    assert "drives the 8 GPUs of one machine at most" in words(answer)


@pytest.mark.parametrize("explorer", [explorers.cost, explorers.overlap])
def test_numbers_are_written_for_readers(explorer):
    text = BeautifulSoup(" ".join(Page(explorer()).lines), "html.parser").get_text()
    assert not re.search(r"\d\.?e[+-]\d|nan|inf\b", text)


ROUNDS = {
    "naive": lambda k: 2,
    "host": lambda k: 2,
    "sharded": lambda k: 2,
    "tree": lambda k: 2 * ceil(log2(k)),
    "ring": lambda k: 2 * (k - 1),
    "hierarchical": lambda k: 2 * (ceil(k / 2) - 1) + 2,
}


@pytest.fixture(scope="module")
def sizes():
    """The plans that race: size -> devices -> algorithm -> what the script reads."""
    page = BeautifulSoup(explorers.allreduce().html, "html.parser")
    return json.loads(page.select_one("script").string)["sizes"]


@pytest.mark.parametrize("algorithm", ROUNDS)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_the_race_has_the_rounds_that_the_algorithm_is_known_for(sizes, algorithm, k):
    for of in sizes.values():
        assert len(of[str(k)][algorithm]["rounds"]) == ROUNDS[algorithm](k)


def test_bytes_and_times_are_those_of_the_gradient(sizes):
    ring = sizes["45 MB (ResNet-18)"]["4"]["ring"]
    assert {message[-1] for messages in ring["rounds"] for message in messages} == {11_175_000}
    assert ring["seconds"][-1] == pytest.approx(6 * (10e-6 + 44.7e6 / 4 / 12.5e9))


def test_the_tree_is_faster_for_short_messages_and_the_ring_for_long_ones(sizes):
    short, long = (
        {name: sizes[size]["8"][name]["seconds"][-1] for name in ("tree", "ring")}
        for size in ("4 kB", "45 MB (ResNet-18)")
    )
    assert short["tree"] < short["ring"] and long["tree"] > long["ring"]


def test_what_of_the_exchange_shows_is_what_sticks_out_of_the_backward_pass():
    page = Page(explorers.overlap())
    answer = page.ask("554 MB (VGG-16)", "160 ms", "2", "100 Gb Ethernet", "all in one")
    inside = 2 * (3.4e-6 + 7 * 553.6e6 / 8 / 150e9)  # eight NVLinked V100: two rounds, in pairs
    seconds = inside + 2 * (9.6e-6 + 553.6e6 / 2 / 12.5e9)  # a ring of two machines, 12.5 GB/s
    assert number(words(answer), r"takes ([\d.]+) ms") == pytest.approx(1000 * seconds, rel=5e-3)
    assert "1 bucket." in words(answer) and "0% are hidden" in words(answer)
    answer = page.ask("554 MB (VGG-16)", "160 ms", "2", "100 Gb Ethernet", "25 MB")
    assert "in 22 buckets." in words(answer)
    boxes = answer.select("rect")
    ends = [float(box["x"]) + float(box["width"]) for box in boxes]
    backward, last = ends[1], ends[-1]
    shown = number(words(answer), r"([\d.]+) ms of it come after")
    whole = 80 + 160 + shown  # the forward pass takes half as long as the backward pass
    assert (last - backward) / (last - float(boxes[0]["x"])) == pytest.approx(
        shown / whole, rel=0.02
    )
    assert all(box.parent["stroke-dasharray"] for box in boxes), "modelled"


@pytest.mark.parametrize("num_buckets", [1, 3, 22])
@pytest.mark.parametrize("bucket_seconds", [0.001, 0.5])
def test_drawn_buckets_end_when_the_cost_model_says(bucket_seconds, num_buckets):
    sends = explorers.bucket_sends(bucket_seconds, 0.5, 1.0, num_buckets)
    assert sends[-1][1] - 1.5 == pytest.approx(
        exposed_seconds(bucket_seconds * num_buckets, 1.0, num_buckets)
    )
    assert all(stop - start == pytest.approx(bucket_seconds) for start, stop in sends)


def test_measured_is_solid_and_modelled_is_dashed():
    picture = BeautifulSoup(
        svg.scaling({1: 1, 2: 0.9}, {1: 1, 2: 2, 4: 3}, {4: (2, 3)}, 4, "P"), "html.parser"
    )
    _ideal, modelled, measured = picture.select("polyline")
    assert modelled["stroke-dasharray"] and not measured.has_attr("stroke-dasharray")
    assert len(modelled["points"].split()) == 3 and len(measured["points"].split()) == 2
    assert [t.string for t in picture.select("title")] == [
        "1 GPU, measured: 1",
        "2 GPUs, measured: 0.9",
        "4 GPUs, modelled: 3",
    ]
    assert picture.svg["role"] == "img" and picture.svg["aria-label"] == "P"


def test_points_lie_where_their_numbers_say():
    circles = BeautifulSoup(svg.scaling({}, {4: 2}, {}, 4, "P"), "html.parser").select("circle")
    (ideal, _) = BeautifulSoup(svg.scaling({}, {4: 2}, {}, 4, "P"), "html.parser").select(
        "polyline"
    )
    (left, lowest), (right, most) = (map(int, p.split(",")) for p in ideal["points"].split())
    (point,) = circles
    assert (int(point["cx"]) - left) / (right - left) == pytest.approx(log2(4) / 8, abs=0.01)
    assert (int(point["cy"]) - lowest) / (most - lowest) == pytest.approx(log2(2) / 8, abs=0.01)
