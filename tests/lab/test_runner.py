"""The runner: whatever a run does, it ends, is told in words, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from recording import MARK, SECONDS, Recorder, lab_processes
from trains import (
    catches_everything,
    crashes,
    exits,
    finishes,
    forks,
    ignores_stop,
    killed_by_the_system,
    leaves_files,
    loads_little_data,
    needs_more_memory,
    prints_one_long_line,
    prints_rubbish,
    raises,
    returns_a_run,
    returns_words,
    takes_devices,
    waits,
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


def test_of_labs_that_wait_the_last_one_runs_and_any_can_be_stopped():
    first, second, third = labs = [Recorder() for _ in range(3)]
    first.start(waits)
    first.until("point")
    second.start(waits)
    assert "another lab of this notebook" in first.end().message
    second.until("point")
    third.start(waits)
    third.until("point")
    assert "another lab of this notebook" in second.end().message
    third.runner.stop()
    assert third.end().message == "Stopped."
    assert [len(lab.outcomes) for lab in labs] == [1, 1, 1]


def test_a_lab_that_waits_for_its_turn_can_be_stopped(recorder):
    with runner._turn:
        recorder.start(finishes)
        recorder.runner.stop()
        assert recorder.end().message == "Stopped."
    assert recorder.named("ready") == [] == recorder.named("started")


def test_a_large_job_does_not_keep_a_stop_waiting(recorder):
    heard, large = threading.Event(), bytes(10**7)
    runner.warm((), lambda event: heard.set())
    assert heard.wait(SECONDS)
    psutil.Process(runner._spare.pid).children()[0].suspend()  # it will never read its job
    recorder.start(lambda num_gpus, batch_size, lr: len(large))
    recorder.until("ready")
    recorder.runner.stop()
    assert recorder.end().status == "stopped" and recorder.named("started") == []


def test_two_labs_hear_of_one_spare():
    heard = [threading.Event(), threading.Event()]
    for event in heard:
        runner.warm((), lambda ready, event=event: event.set())
    assert all(event.wait(SECONDS) for event in heard)


def test_stop_ends_a_run_at_once(recorder):
    recorder.start(waits)
    recorder.until("point")
    recorder.runner.stop()
    outcome = recorder.end()
    assert (outcome.status, outcome.message) == ("stopped", "Stopped.")


@pytest.mark.parametrize("train", [ignores_stop, catches_everything])
def test_a_run_that_ignores_stop_is_killed(recorder, train):
    recorder.start(train)
    recorder.until("point")
    recorder.runner.stop()
    outcome = recorder.end()
    assert outcome.status == "stopped"
    assert "did not end by itself" in outcome.message


def test_stop_before_the_worker_is_up(recorder):
    recorder.start(waits)
    recorder.runner.stop()
    assert recorder.end().status == "stopped"


def test_stop_without_a_run_and_after_its_end_does_nothing(recorder):
    recorder.runner.stop()
    assert recorder.run(finishes).status == "finished"
    recorder.runner.stop()
    assert recorder.run(finishes).status == "finished"


def test_the_time_limit_ends_a_run():
    recorder = Recorder(time_limit=0.2)
    outcome = recorder.run(waits)
    assert outcome.status == "stopped"
    assert "time limit of 0.2 seconds" in outcome.message


def test_one_lab_never_runs_twice_at_once(recorder):
    recorder.start(waits)
    with pytest.raises(runner.BusyError, match="A run is going on"):
        recorder.start(finishes)
    recorder.until("point")
    recorder.runner.stop()
    recorder.end()


def test_a_run_in_another_lab_ends_the_first(recorder):
    other = Recorder()
    recorder.start(waits)
    recorder.until("point")
    assert other.run(finishes).status == "finished"
    assert recorder.end().message.startswith("Stopped, because another lab")


@pytest.mark.parametrize(
    "train, words",
    [
        (raises, ["train raised KeyError: 'here'"]),
        (loads_little_data, ["batch_size=1024 is above the 512 examples"]),
        (needs_more_memory, ["ran out of memory", "smaller batch"]),
        (killed_by_the_system, ["SIGKILL", "memory", "smaller batch"]),
        (crashes, ["SIGSEGV", "crashed"]),
        (exits, ["exit code 7"]),
    ],
)
def test_every_bad_end_is_told_in_words(recorder, train, words):
    outcome = recorder.run(train, batch_size=1024)
    assert outcome.status == "failed"
    assert all(word in outcome.message for word in words), outcome.message
    assert "the last words" in outcome.log


def test_the_traceback_starts_in_the_readers_code(recorder):
    traceback = recorder.run(raises).traceback
    assert "in raises" in traceback and "worker.py" not in traceback


def test_binary_rubbish_in_the_log_stays_readable(recorder):
    outcome = recorder.run(prints_rubbish)
    assert outcome.status == "finished"
    assert outcome.log.endswith("the last words")
    assert "\x00" not in outcome.log and "\x1b" not in outcome.log
    assert outcome.log.count("\n") < 25
    assert len(recorder.run(prints_one_long_line).log) <= 20_000


def test_forked_and_detached_children_do_not_outlive_the_run(recorder, mark):
    assert recorder.run(forks).status == "finished"
    left = [p for p in lab_processes(mark) if "sleep" in p.name() or "forked" in p.cmdline()]
    assert left == []


def test_temporary_files_do_not_outlive_the_run(recorder, tmp_path):
    recorder.start(leaves_files)
    folder = recorder.until("point")["folder"]
    assert os.path.dirname(folder).startswith(str(tmp_path)) and os.path.exists(folder)
    recorder.runner.stop()
    recorder.end()
    assert not os.path.exists(folder)


def test_a_killed_worker_a_killed_supervisor(recorder):
    recorder.start(waits)
    os.kill(recorder.until("point")["pid"], signal.SIGKILL)
    assert "SIGKILL" in recorder.end().message
    recorder.events.clear()
    recorder.start(waits)
    os.kill(psutil.Process(recorder.until("point")["pid"]).ppid(), signal.SIGKILL)
    outcome = recorder.end()
    assert outcome.status == "failed" and "watches over the run was killed" in outcome.message
    assert recorder.run(finishes).status == "finished"


NOTEBOOK = """
import sys
import trains
from recording import Recorder
recorder = Recorder()
recorder.start(trains.ignores_stop)
recorder.until("point")
print("running", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, "end of input"])
def test_nothing_outlives_the_notebook(mark, how):
    environment = os.environ | {MARK: mark, "TMPDIR": mark, "PYTHONPATH": os.path.dirname(__file__)}
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert notebook.stdout.readline() == b"running\n"
    started = lab_processes(mark)
    assert len(started) >= 3, "the notebook, a supervisor and a worker"
    if how == "end of input":
        notebook.stdin.close()
    else:
        notebook.send_signal(how)
    notebook.wait(SECONDS)
    _, alive = psutil.wait_procs(started, timeout=SECONDS)
    assert alive == []
    notebook.stdin.close()
    notebook.stdout.close()


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
