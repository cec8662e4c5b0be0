"""The timetable of a pipeline in a page: as computed, by the keys, at rest, on paper."""

import pytest
from contrast import FAINT
from moving import hold_clock, text_without_scripts
from pipelines import SCHEDULES

from d2lmgpu.figures.pipeline import PipelineTimeline

LEFT, RIGHT, TOP, ROW = 48, 50, 20, 30


@pytest.fixture(scope="module")
def picture():
    return PipelineTimeline(SCHEDULES, [2, 4, 8], [1, 8, 16], "About it.", ("1F1B", 4, 8))


@pytest.fixture
def pipeline(show_offline, picture):
    return show_offline(f"<article>{picture._repr_html_()}</article>")


def clock(page):
    return page.get_by_role("slider", name="After")


def choose(page, schedule, ranks, micro):
    for name, text in (("Schedule", schedule), ("Ranks", ranks), ("Micro-batches", micro)):
        page.get_by_role("combobox", name=name, exact=True).select_option(str(text))


def sentence(page):
    return page.get_by_role("status").inner_text()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("ranks", "micro"), [(2, 1), (4, 8), (8, 16)])
def test_boxes_are_the_operations_of_the_timetable(pipeline, picture, schedule, ranks, micro):
    choose(pipeline, schedule, ranks, micro)
    plan = picture.plans[schedule][ranks][micro]
    svg = pipeline.locator("svg")
    width = svg.evaluate("svg => svg.viewBox.baseVal.width")
    for rank, spans in enumerate(plan.spans):
        y = TOP + ROW * rank
        drawn = svg.locator(f"rect:has(title)[y='{y}']").evaluate_all(
            """all => all.map(e => [e.getAttribute("class"), e.x.baseVal.value,
               e.x.baseVal.value + e.width.baseVal.value, e.textContent])"""
        )
        scale = (width - LEFT - RIGHT) / plan.total
        assert len(drawn) == len(spans)
        for (kind, left, right, words), (of, i, _, start, end) in zip(drawn, spans, strict=True):
            assert kind == f"pipeline-{of}" and f"micro-batch {i}" in words
            assert [left, right] == pytest.approx(
                [LEFT + scale * start, LEFT + scale * end], abs=0.01
            )
    assert f"Each rank is idle {round(100 * plan.idle)} % of the time" in sentence(pipeline)
    assert f"keep {', '.join(map(str, plan.kept))} micro-batches" in sentence(pipeline)
    assert sentence(pipeline).endswith("Modelled.")


def kept(page):
    texts = page.locator("svg text.pipeline-end").all_text_contents()
    return [int(text.split(" of ")[0]) for text in texts if " of " in text]


def test_play_lets_micro_batches_pass_and_escape_stops_it(pipeline):
    hold_clock(pipeline)
    pipeline.get_by_role("button", name="Play").click()
    pipeline.clock.run_for(1230)  # of nine seconds for 33 units: 4.5 of them
    label = pipeline.get_by_role("img").get_attribute("aria-label")
    assert "rank 3 computes: backward pass, micro-batch 0" in label
    assert "rank 1 waits" in label and kept(pipeline) == [4, 3, 2, 1]
    pipeline.keyboard.press("Escape")
    stopped = clock(pipeline).input_value()
    pipeline.clock.run_for(5000)
    assert clock(pipeline).input_value() == stopped
    pipeline.get_by_role("button", name="Play").click()
    pipeline.clock.run_for(9000)
    assert clock(pipeline).input_value() == "1000"
    assert pipeline.get_by_role("img").get_attribute("aria-label").count("is done") == 4
    assert kept(pipeline) == [0, 0, 0, 0]


def test_with_reduced_motion_it_goes_from_end_to_end(pipeline, picture):
    pipeline.emulate_media(reduced_motion="reduce")
    choose(pipeline, "GPipe", 2, 1)
    hold_clock(pipeline)
    pipeline.get_by_role("button", name="Play").click()
    seen = []
    for _ in range(5):  # the start, and two passes there and back
        pipeline.clock.run_for(450)
        before = clock(pipeline).input_value()
        pipeline.clock.run_for(450)
        seen.append(clock(pipeline).input_value())
        assert before in ("0", *seen[-2:])
    assert seen == ["167", "333", "667", "1000", "1000"]
    assert pipeline.get_by_role("button", name="Play").is_visible()


def test_the_keys_are_enough(pipeline):
    pipeline.get_by_role("combobox", name="Schedule").focus()
    pipeline.keyboard.press("i")
    assert sentence(pipeline).startswith("interleaved 1F1B, ranks: 4, micro-batches: 8.")
    assert "Each rank is idle 16 % of the time" in sentence(pipeline)
    clock(pipeline).focus()
    pipeline.keyboard.press("Home")
    assert "After 0 of 28.5" in clock(pipeline).get_attribute("aria-valuetext")
    pipeline.keyboard.press("ArrowRight")
    text = clock(pipeline).get_attribute("aria-valuetext")
    assert text.startswith("After 0.5 of 28.5. rank 0 computes: forward pass, micro-batch 1")
    pipeline.get_by_role("button", name="Next").focus()
    pipeline.keyboard.press("Enter")
    label = pipeline.get_by_role("img").get_attribute("aria-label")
    assert "rank 1 computes: forward pass, micro-batch 1, stage 1, keeps 2" in label


def test_the_address_brings_the_same_moment_back(pipeline):
    choose(pipeline, "GPipe", 8, 16)
    pipeline.get_by_role("button", name="Back").click()
    text, address = pipeline.locator("article").inner_text(), pipeline.url
    pipeline.goto("about:blank")
    pipeline.goto(address)
    assert pipeline.locator("article").inner_text() == text
    assert sentence(pipeline).startswith("GPipe, ranks: 8, micro-batches: 16.")
    pipeline.goto("about:blank")
    pipeline.goto(address.split("#")[0] + "#explorer-1?schedule=x&ranks=9&micro=y&at=z")
    assert sentence(pipeline).startswith("1F1B, ranks: 4, micro-batches: 8.")


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_and_its_letters_can_be_read(pipeline, width):
    pipeline.set_viewport_size({"width": width, "height": 900})
    for ranks, micro in ((8, 16), (2, 1)):
        choose(pipeline, "interleaved 1F1B", ranks, micro)
        assert pipeline.evaluate("document.documentElement.scrollWidth") <= width
        letters, *rooms = pipeline.locator("svg").evaluate(
            """(svg) => {
                const box = svg.getBoundingClientRect();
                const texts = [...svg.querySelectorAll("text")];
                return [12 * box.width / svg.viewBox.baseVal.width, ...texts.map((text) => {
                    const own = text.getBoundingClientRect();
                    return Math.min(own.left - box.left, box.right - own.right);
                })];
            }"""
        )
        assert letters >= 9 and min(rooms) >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_it_says_can_be_read_on_what_lies_below(show_offline, picture, scheme):
    style = {"light": "background: #fff; color: #222", "dark": "background: #121212; color: #eee"}
    theme = f'data-jp-theme-light="{str(scheme == "light").lower()}" style="{style[scheme]}"'
    page = show_offline(f"<article {theme}>{picture._repr_html_()}</article>")
    read = page.evaluate(FAINT, ".pipeline")
    assert read["count"] > 40 and read["faint"] == []


def test_on_paper_all_of_it_is_there(pipeline):
    clock(pipeline).fill("300")
    pipeline.emulate_media(media="print")
    pipeline.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert pipeline.get_by_role("img").get_attribute("aria-label").count("is done") == 4
    assert pipeline.locator(":is(select, button, input):visible").count() == 0
    pipeline.evaluate("dispatchEvent(new Event('afterprint'))")
    assert "is done" not in pipeline.get_by_role("img").get_attribute("aria-label")


def test_without_scripts_the_words_are_there(browser, picture):
    assert repr(picture) in text_without_scripts(browser, picture._repr_html_())
