"""Stop, time limits, and labs that wait for each other: one run at a time, each can be ended."""

import threading

import pytest
from recording import SECONDS, Recorder, worker_under
from trains import (
    catches_everything,
    finishes,
    ignores_stop,
    waits,
)

from d2lmgpu.lab import runner
from d2lmgpu.lab.pool import POOL


@pytest.mark.usefixtures("all_the_time")
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
    with POOL.turn:
        recorder.start(finishes)
        recorder.runner.stop()
        assert recorder.end().message == "Stopped."
    assert recorder.named("ready") == [] == recorder.named("started")


def test_a_large_job_does_not_keep_a_stop_waiting(recorder):
    heard, large = threading.Event(), bytes(10**7)
    POOL.keep_spare((), lambda event: heard.set())
    assert heard.wait(SECONDS)
    worker_under(POOL.spare).suspend()  # it will never read its job
    recorder.start(lambda num_gpus, batch_size, lr: len(large))
    recorder.until("ready")
    recorder.runner.stop()
    assert recorder.end().status == "stopped" and recorder.named("started") == []


@pytest.mark.usefixtures("all_the_time")
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
