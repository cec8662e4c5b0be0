"""How runs in the page end, also where they cannot begin: in words, and with no worker left."""

import time

import pytest
from in_page import SECONDS, USUAL, train

SETTINGS = USUAL | {"devices": 2, "epochs": 1000}
BEGIN = """async (settings) => {
    await Training.load();
    await new Promise((resolve) => {
        window.run = Training.start(settings, (event) => event.type === "step" && resolve());
    });
}"""
# A page whose workers have this before their own text.
PREPENDED = """(() => {
    const whole = window.Blob;
    window.Blob = function (parts, options) {
        return new whole(options?.type === "text/javascript" ? ["%s", ...parts] : parts, options);
    };
})()"""


@pytest.mark.parametrize("network", ["mlp", "lenet"])
@pytest.mark.parametrize("devices", [1, 8])
def test_stop_ends_the_workers_at_once(page, network, devices):
    page.evaluate(BEGIN, SETTINGS | {"network": network, "devices": devices})
    assert len(page.workers) == devices
    how, steps = page.evaluate(
        """async () => {
            window.run.stop();
            const goes = {how: "goes on", losses: []};
            const {how, losses} = await Promise.race([window.run.done, goes]);
            return [how, losses.length];
        }"""
    )
    assert how == "stopped" and steps > 0
    no_worker_is_left(page)


def no_worker_is_left(page):
    until(page, lambda: not page.workers, "workers are left")


def until(page, holds, otherwise):
    """The browser tells of workers' ends and errors in its own time: each question lets it."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, otherwise
        page.evaluate("0")


def test_leaving_the_page_ends_the_run(page):
    page.evaluate(BEGIN, SETTINGS)
    page.evaluate("dispatchEvent(new Event('pagehide'))")  # the browser may keep the page itself
    assert page.evaluate("Promise.race([window.run.done, 'goes on'])")["how"] == "stopped"
    no_worker_is_left(page)
    page.evaluate(BEGIN, SETTINGS)
    page.goto("about:blank")
    no_worker_is_left(page)


def test_one_run_at_a_time(page):
    page.evaluate(BEGIN, SETTINGS)
    with pytest.raises(Exception, match="Another run in this page"):
        train(page)
    page.evaluate("window.run.stop()")
    assert train(page)["how"] == "finished"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"network": "resnet"}, 'network="resnet": give one of lenet, mlp, softmax'),
        ({"devices": 3}, "devices=3: give 1, 2, 4 or 8"),
        ({"batchSize": 100}, "batchSize=100: give a multiple of 8 from 16 to 1024"),
        ({"batchSize": 2048}, "batchSize=2048: give a multiple of 8"),
        ({"lr": 0}, "lr=0: give a number above 0"),
        ({"lr": "0.1"}, 'lr="0.1": give a number'),
        ({"epochs": 0}, "epochs=0: give a whole number from 1"),
        ({"algorithm": "star"}, 'algorithm="star": give tree, one or ring'),
        ({"seed": -1}, "seed=-1: give a whole number from 0"),
        ({"momentum": 0.9}, "There is no setting momentum; there are network, devices"),
    ],
)
def test_wrong_settings_are_refused_in_words(page, wrong, words):
    with pytest.raises(Exception) as refused:
        train(page, **wrong)
    assert words in str(refused.value)
    assert page.workers == []


def test_a_run_before_its_data_is_refused(page):
    with pytest.raises(Exception, match="wait for Training"):
        page.evaluate("(settings) => Training.start(settings, () => {})", SETTINGS)


@pytest.mark.parametrize("file", ["images.js", "code.js", "device.js"])
def test_a_missing_file_is_named_and_may_come_later(blank, address, file):
    blank.route(f"**/{file}", lambda route: route.abort())
    blank.goto(address + "index.html")
    with pytest.raises(Exception, match=f"{file} could not be loaded: check"):
        train(blank)
    blank.unroute(f"**/{file}")
    assert train(blank)["how"] == "finished"


@pytest.mark.parametrize("text", ["AAAA", "no base64!", "eJwDAAAAAAE="])
def test_images_that_cannot_be_read_are_refused(blank, address, text):
    body = f'globalThis.TrainingImages = "{text}";'
    blank.route("**/images.js", lambda route: route.fulfill(body=body))
    blank.goto(address + "index.html")
    with pytest.raises(Exception, match="cannot be read"):
        train(blank)


def failure(page, **settings):
    run = train(page, **settings)
    no_worker_is_left(page)
    assert run["how"] == "failed" and run["events"][-1]["type"] == "end"
    return run["message"]


def test_a_policy_that_forbids_workers_is_named(blank, address):
    blank.goto(address + "no-workers.html")
    assert 'it must allow "worker-src blob:"' in failure(blank, devices=2)


def test_where_a_policy_forbids_webassembly_plain_javascript_trains(blank, address):
    blank.goto(address + "no-wasm.html")
    run = train(blank, devices=2)
    assert run["how"] == "finished"
    assert run["events"][0]["plain"] and "plain JavaScript" in run["events"][0]["why"]


def test_no_memory_is_said(page):
    page.evaluate(PREPENDED % "WebAssembly.Instance = function () { throw RangeError('full'); };")
    message = failure(page, devices=4)
    assert "there is no memory for its replica (full); choose fewer devices" in message


def test_an_error_of_one_device_ends_all(page):
    """Device 1 dies in its first allreduce; device 0 would wait for it for ever."""
    page.evaluate(PREPENDED % "MessagePort.prototype.postMessage = () => { throw Error('cut'); };")
    assert "failed: cut" in failure(page, devices=2)


def test_an_error_of_the_listener_is_seen_and_the_run_goes_on(page):
    how = page.evaluate(
        """async (settings) => {
            await Training.load();
            const run = Training.start(settings, ({type}) => { throw Error(type); });
            const late = new Promise((end) => setTimeout(end, 60_000, {how: "no end"}));
            return (await Promise.race([run.done, late])).how;
        }""",
        USUAL,
    )
    types = {"start", "step", "epoch", "end"}
    until(page, lambda: types <= set(page.errors), "an error was not seen")
    assert how == "finished"
    page.errors.clear()


def test_what_cannot_be_read_is_an_error(page):
    page.evaluate(PREPENDED % "setTimeout(() => dispatchEvent(new Event('messageerror')));")
    assert "cannot read what the page has sent" in failure(page, epochs=100)


def test_a_worker_whose_text_is_broken_is_an_error(page):
    page.evaluate(PREPENDED % "syntax error;")
    assert "Device" in failure(page, devices=2)
