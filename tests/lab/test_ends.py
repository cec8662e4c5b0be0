"""However a run ends: told in words, and nothing stays behind."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from processes import left
from recording import MARK, SECONDS, lab_processes
from soaking import sample
from trains import (
    crashes,
    exits,
    finishes,
    forks,
    killed_by_the_system,
    leaves_files,
    loads_little_data,
    needs_more_memory,
    prints_one_long_line,
    prints_rubbish,
    raises,
    waits,
)


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
    assert [p for p in lab_processes(mark) if p.info["name"] in ("sleep", "forked")] == []


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


@pytest.mark.parametrize("how", sample(1, [signal.SIGKILL, signal.SIGTERM, "end of input"]))
def test_nothing_outlives_the_notebook(mark, how):
    folder = os.path.dirname(__file__)
    path = os.pathsep.join([folder, os.path.dirname(folder)])
    environment = os.environ | {MARK: mark, "TMPDIR": mark, "PYTHONPATH": path}
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert notebook.stdout.readline() == b"running\n"
    started = lab_processes(mark)
    assert len(started) >= 3, "the notebook, a supervisor and a worker"
    if how == "end of input":
        notebook.stdin.close()
    else:
        notebook.send_signal(how)
    notebook.wait(SECONDS)
    assert left(started, SECONDS) == []
    notebook.stdin.close()
    notebook.stdout.close()
