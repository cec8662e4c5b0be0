"""The runner: what a run tells and returns, and the spare that makes the next start quick."""

import os
import sys
import threading

from recording import SECONDS, worker_under
from trains import (
    finishes,
    raises,
    returns_a_run,
    returns_words,
    takes_devices,
    tells_its_environment,
    writes_a_broken_line,
)

from d2lmgpu.lab import runner
from d2lmgpu.lab.pool import POOL
from d2lmgpu.process.events import report


def test_the_events_of_a_run_arrive_in_order(recorder):
    outcome = recorder.run(finishes, num_gpus=2)
    assert (outcome.status, outcome.message) == ("finished", "Finished.")
    assert [event["event"] for event in recorder.events][:2] == ["ready", "started"]
    assert [event["x"] for event in recorder.named("point")] == [0, 1, 2]
    assert recorder.named("started")[0]["sharing"] in ("in parallel", "simulated")


def test_what_train_returned_comes_back(recorder):
    result = recorder.run(returns_a_run).result
    assert (result["num_samples"], result["seconds"]) == (100, [2.0, 1.0])
    assert result["accuracies"] == [0.5, 0.75]


def test_the_second_run_uses_the_spare(recorder):
    recorder.run(finishes)
    spare, ready = POOL.spare, threading.Event()
    POOL.keep_spare((), lambda event: ready.set())
    assert ready.wait(SECONDS) and spare is POOL.spare
    recorder.events.clear()
    recorder.run(finishes)
    assert spare.ended and spare is not POOL.spare
    assert recorder.events[0]["event"] == "ready", "which the spare had said before the run"


def test_a_spare_of_another_framework_or_a_dead_one_is_not_used(recorder, mark):
    heard = threading.Event()
    POOL.keep_spare((), lambda event: heard.set())
    assert heard.wait(SECONDS)
    spare = POOL.spare
    worker_under(spare).kill()
    spare.thread.join(SECONDS)
    assert recorder.run(finishes).status == "finished"
    POOL.keep_spare(("no-such-framework",))
    outcome = recorder.run(finishes, "no-such-framework")
    assert outcome.status == "failed"
    assert "could not start" in outcome.message and "no-such-framework" in outcome.message


def test_each_framework_runs_in_the_python_of_its_own_kernel(recorder, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nMARKED=1 exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("D2LMGPU_PYTHON_TORCH", str(python))
    assert recorder.run(tells_its_environment, "torch").status == "finished"
    assert recorder.named("point")[-1]["environ"]["MARKED"] == "1"
    recorder.events.clear()
    assert recorder.run(tells_its_environment).status == "finished"
    assert "MARKED" not in recorder.named("point")[-1]["environ"]


def test_a_python_or_framework_that_is_missing_is_told(recorder, monkeypatch, tmp_path):
    monkeypatch.setenv("D2LMGPU_PYTHON_MXNET", str(tmp_path / "none"))
    outcome = recorder.run(finishes, "mxnet")
    assert outcome.status == "failed"
    assert "D2LMGPU_PYTHON_MXNET" in outcome.message and "none" in outcome.message
    events = []
    POOL.keep_spare(("mxnet",), events.append)
    assert "D2LMGPU_PYTHON_MXNET" in events[0]["message"], "before a run, too"
    (tmp_path / "mxnet.py").write_text("raise ModuleNotFoundError(name='mxnet')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("D2LMGPU_PYTHON_MXNET")
    outcome = recorder.run(finishes, "mxnet")
    assert outcome.status == "failed"
    assert sys.executable in outcome.message and "D2LMGPU_PYTHON_MXNET" in outcome.message


def test_what_is_compiled_is_kept_and_temporary_files_are_not(recorder):
    seen = []
    for _ in range(2):
        recorder.run(tells_its_environment)
        seen.append(recorder.named("point")[-1]["environ"])
    assert seen[0]["TMPDIR"] != seen[1]["TMPDIR"]
    assert seen[0]["TORCHINDUCTOR_CACHE_DIR"] == seen[1]["TORCHINDUCTOR_CACHE_DIR"]
    assert not seen[0]["TORCHINDUCTOR_CACHE_DIR"].startswith(seen[0]["TMPDIR"])


def test_a_run_is_where_the_notebook_is_now(recorder, monkeypatch, tmp_path):
    recorder.run(finishes)  # the spare for the next one starts here
    monkeypatch.chdir(tmp_path)
    assert recorder.run(tells_its_environment).status == "finished"
    assert recorder.named("point")[-1]["folder"] == str(tmp_path)


def test_the_end_is_told_once_however_late_the_stop(recorder):
    at_the_end = threading.Event()

    def on_end(outcome):
        recorder.outcomes.append(outcome)
        recorder.runner.stop()  # nothing runs any more
        at_the_end.set()

    recorder.runner.on_end = on_end
    for train in (finishes, raises, finishes):
        recorder.run(train)
        assert at_the_end.wait(SECONDS) and not recorder.runner.running
        at_the_end.clear()
    assert [outcome.status for outcome in recorder.outcomes] == ["finished", "failed", "finished"]


def test_stop_comes_to_nothing_once_the_run_has_ended(recorder):
    """However late: the run has gone, and its end has not been told yet."""

    class EndsLate(runner.Runner):
        def _have_turn(self, job, modules):
            outcome = super()._have_turn(job, modules)
            self.stop()
            return outcome

    late = EndsLate(on_end=recorder.outcomes.append)
    for _ in range(2):
        late.start(raises, num_gpus=1, batch_size=8, lr=0.1)
        assert late.wait(SECONDS)
    late.stop()
    assert [outcome.status for outcome in recorder.outcomes] == ["failed", "failed"]
    late.start(object.__new__, num_gpus=threading.Lock())
    assert late.wait(SECONDS) and recorder.outcomes[-1].status == "failed"


def test_devices_past_the_machine_s_are_simulated_unless_chosen(recorder, monkeypatch):
    monkeypatch.delenv("D2LMGPU_DEVICES", raising=False)
    assert recorder.run(takes_devices, num_gpus=16).status == "finished"
    assert recorder.named("started")[-1]["sharing"] == "simulated"
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
        POOL.keep_spare((), lambda ready, event=event: event.set())
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
