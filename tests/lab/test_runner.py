"""The runner: what a run tells and returns, and the spare that makes the next start quick."""

import threading

import psutil
from recording import SECONDS
from trains import (
    finishes,
    returns_a_run,
    returns_words,
    takes_devices,
    writes_a_broken_line,
)

from d2lmgpu.events import report
from d2lmgpu.lab import runner


def test_the_events_of_a_run_arrive_in_order(recorder):
    outcome = recorder.run(finishes, num_gpus=2)
    assert (outcome.status, outcome.message) == ("finished", "Finished.")
    assert [event["event"] for event in recorder.events][:2] == ["ready", "started"]
    assert [event["x"] for event in recorder.named("point")] == [0, 1, 2]
    assert recorder.named("started")[0]["overlap"] in ("in parallel", "simulated")


def test_what_train_returned_comes_back(recorder):
    result = recorder.run(returns_a_run).result
    assert (result["num_samples"], result["seconds"]) == (100, [2.0, 1.0])
    assert result["accuracies"] == [0.5, 0.75]


def test_the_second_run_uses_the_spare(recorder):
    recorder.run(finishes)
    spare, ready = runner._spare, threading.Event()
    runner.warm((), lambda event: ready.set())
    assert ready.wait(SECONDS) and spare is runner._spare
    recorder.events.clear()
    recorder.run(finishes)
    assert spare.ended and spare is not runner._spare
    assert recorder.events[0]["event"] == "ready", "which the spare had said before the run"


def test_a_spare_of_another_framework_or_a_dead_one_is_not_used(recorder, mark):
    heard = threading.Event()
    runner.warm((), lambda event: heard.set())
    assert heard.wait(SECONDS)
    spare = runner._spare
    psutil.Process(spare.pid).children()[0].kill()
    spare.thread.join(SECONDS)
    assert recorder.run(finishes).status == "finished"
    runner.warm(("no-such-framework",))
    outcome = recorder.run(finishes, "no-such-framework")
    assert outcome.status == "failed"
    assert "could not start" in outcome.message and "no-such-framework" in outcome.message


def test_devices_past_the_machine_s_are_simulated_unless_chosen(recorder, monkeypatch):
    monkeypatch.delenv("D2LMGPU_DEVICES", raising=False)
    assert recorder.run(takes_devices, num_gpus=16).status == "finished"
    assert recorder.named("started")[-1]["overlap"] == "simulated"
    monkeypatch.setenv("D2LMGPU_DEVICES", "cpu:3")
    assert recorder.run(takes_devices, num_gpus=3).status == "finished"
    outcome = recorder.run(takes_devices, num_gpus=4)
    assert outcome.status == "failed" and "4 devices were asked for, there are 3" in outcome.message


def test_a_listener_that_raises_and_a_broken_line_do_not_end_the_hearing():
    heard = []

    def on_event(event):
        heard.append(event)
        if event["event"] == "started":
            raise ValueError("cannot be drawn")

    ended = []
    lab = runner.Runner(on_event, ended.append)
    lab.start(writes_a_broken_line, num_gpus=1, batch_size=8, lr=0.1)
    assert lab.wait(SECONDS)
    assert ended[0].status == "finished" and [e["x"] for e in heard if "x" in e] == [0, 1, 2]
    assert "cannot be drawn" in ended[0].log and "not an event: b'{broken'" in ended[0].log
    assert "not an event: b'3'" in ended[0].log


def test_a_result_that_is_no_number_is_told(recorder):
    outcome = recorder.run(returns_words)
    assert outcome.status == "failed"
    assert "num_samples, accuracies and seconds" in outcome.message


def test_two_labs_hear_of_one_spare():
    heard = [threading.Event(), threading.Event()]
    for event in heard:
        runner.warm((), lambda ready, event=event: event.set())
    assert all(event.wait(SECONDS) for event in heard)


def test_events_are_left_out_as_asked_and_only_rank_0_reports(monkeypatch, tmp_path):
    file = tmp_path / "events"
    file.touch()
    report("nobody listens")
    monkeypatch.setenv("D2LMGPU_EVENTS", str(file))
    for i in range(5):
        report("often", every=1000.0, i=i)
    monkeypatch.setenv("RANK", "1")
    report("another rank")
    monkeypatch.setenv("RANK", "0")
    report("rank 0", x=float("nan"))
    lines = file.read_text().splitlines()
    assert ['"often"' in lines[0], '"rank 0"' in lines[1], len(lines)] == [True, True, 2]
