"""Why a run of the lab failed is said, where the reason was easily lost; and no flood hides it."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from d2lmgpu.lab.outcome import outcome_of_return, readable
from d2lmgpu.lab.pool import POOL
from d2lmgpu.process.events import report

CAUSE = "train raised KeyError: 'the cause'"


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Odder(Exception):
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


class Oddest(BaseException):
    def __str__(self):
        return 5


def raises(kind):
    def train(num_gpus, batch_size, lr):
        raise kind(1)

    return train


@pytest.mark.parametrize("kind", [Odd, Odder, Oddest])
def test_an_error_that_cannot_be_shown_is_named_by_its_type(recorder, kind):
    outcome = recorder.run(raises(kind))
    assert outcome.status == "failed" and kind.__name__ in outcome.message
    assert outcome.message.startswith("train raised ") and "in train" in outcome.traceback


def removes_its_folder(num_gpus, batch_size, lr):
    shutil.rmtree(tempfile.gettempdir())
    raise KeyError("the cause")


def allows_no_files(num_gpus, batch_size, lr):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    raise KeyError("the cause")


def breaks_python(num_gpus, batch_size, lr):
    json.loads = tempfile.mkdtemp = os._exit = None
    raise KeyError("the cause")


@pytest.mark.parametrize("train", [removes_its_folder, allows_no_files, breaks_python])
def test_an_error_is_told_though_no_file_can_be_written(recorder, train):
    assert recorder.run(train).message.startswith(CAUSE)


def forgets_its_environment():
    os.environ.clear()


def is_another_rank():
    os.environ |= {"RANK": "1", "WORLD_SIZE": "2"}


def closes_all_files():
    os.closerange(3, 4000)


def opens_others_instead():
    os.closerange(3, 4000)
    file = Path(tempfile.gettempdir(), "notes")
    for _ in range(20):
        os.open(file, os.O_WRONLY | os.O_CREAT)


HARMS = [forgets_its_environment, is_another_rank, closes_all_files, opens_others_instead]


@pytest.mark.parametrize("harm", HARMS)
def test_the_end_is_told_whatever_became_of_the_way_to_the_lab(recorder, harm):
    def train(num_gpus, batch_size, lr):
        report("point", x=1)
        harm()
        if num_gpus == 2:
            raise KeyError("the cause")
        return {"num_samples": 7}

    outcome = recorder.run(train)
    assert outcome.status == "finished" and outcome.result["num_samples"] == 7
    assert recorder.run(train, num_gpus=2).message.startswith(CAUSE)


def uses_up_its_cpu_time(num_gpus, batch_size, lr):
    resource.setrlimit(resource.RLIMIT_CPU, (1, 5))
    while True:
        pass


def test_a_run_that_used_up_its_cpu_time(recorder):
    message = recorder.run(uses_up_its_cpu_time).message
    assert (
        message == "The run's process was killed by SIGXCPU: its CPU time was used up (ulimit -t)."
    )


def test_a_folder_that_was_removed_is_said(recorder, monkeypatch, tmp_path):
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        folder.rmdir()
        outcome = recorder.run(breaks_python)
        assert outcome.status == "failed"
        assert outcome.message.startswith("The folder in which this Python runs was removed")


@pytest.mark.parametrize("files", [1100])
def test_a_run_of_a_notebook_with_many_open_files(recorder, files):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened = [open(os.devnull) for _ in range(files)]  # noqa: SIM115
    try:
        POOL.end_spare()
        assert recorder.run(removes_its_folder).message.startswith(CAUSE)
        POOL.end_spare()
    finally:
        for file in opened:
            file.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.array(1.5), "1.5", object()])
@pytest.mark.parametrize("name", ["seconds", "accuracies"])
def test_what_is_no_list_is_refused_in_sentences(name, value):
    message = outcome_of_return({name: value})["message"]
    assert ". The lab takes" in message and ".. " not in message


@pytest.mark.parametrize(
    "accuracy, words",
    [(87.5, "give 0.875 for 87.5 %"), (1.5, "give 0.015 for 1.5 %"), (250.0, "250 is above 1. ")],
)
def test_an_accuracy_above_1_is_refused_with_what_to_give(accuracy, words):
    outcome = outcome_of_return({"accuracies": [0.5, accuracy]})
    assert outcome["status"] == "failed" and words in outcome["message"]


@pytest.mark.parametrize("accuracy", [0, 1, np.float32(1.0000001)])
def test_accuracies_up_to_1_are_taken(accuracy):
    assert outcome_of_return({"accuracies": [accuracy]})["status"] == "finished"


@pytest.mark.parametrize("text", ["x" * 10_000, "a\n" * 24 + "x" * 10_000, "é" * 10_000 + "\nlast"])
def test_long_lines_of_a_log_are_cut(text):
    shown = readable(text)
    assert "bytes left out" in shown and len(shown) < 2000
    assert shown.endswith(text[-4:])


def writes_without_an_end(num_gpus, batch_size, lr):
    with open(os.environ["D2LMGPU_EVENTS"], "wb", buffering=0) as events:
        events.write(b"no event" * 10)


def writes_events_without_an_end(num_gpus, batch_size, lr):
    with open(os.environ["D2LMGPU_EVENTS"], "wb", buffering=0) as events:
        for _ in range(2000):
            events.write(b"no event" * 10_000)
    raise KeyError("the cause")


def kills_itself_after_such_words(num_gpus, batch_size, lr):
    writes_without_an_end(num_gpus, batch_size, lr)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    "train, status",
    [
        (writes_without_an_end, "finished"),
        (kills_itself_after_such_words, "failed"),
        (writes_events_without_an_end, "failed"),
    ],
)
def test_words_in_the_pipe_of_events_without_an_end_hide_nothing(recorder, train, status):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = recorder.run(train)
    assert outcome.status == status
    assert "not an event: b'no event" in outcome.log and len(outcome.log) < 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


def floods(num_gpus, batch_size, lr):
    subprocess.Popen([sys.executable, "-c", "while True: print('debug ' * 1000)"])
    while True:
        os.write(1, b"debug " * 10_000)


def test_the_time_limit_holds_under_a_flood(recorder):
    limited = type(recorder)(time_limit=2)
    outcome = limited.run(floods)
    assert outcome.status == "stopped" and "time limit of 2 seconds" in outcome.message
