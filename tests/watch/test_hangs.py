"""Hangs are named with the line of each rank; a rank that is slow is none."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from planted_hangs import HEAD, SCRIPTS, SLOW, SLOW_SCRIPT, TRAINS
from soaking import sample

from d2lmgpu.process.addresses import held_ports
from d2lmgpu.process.hangs.log import without_core
from d2lmgpu.process.hangs.watcher import STILL
from d2lmgpu.watch.check.run import LIMITS, OBSERVER
from d2lmgpu.watch.run import run

OPTIONS = {"double": False, "short": False, "devices": 2}


def watched(folder, source):
    script = folder / "script.py"
    script.write_text(HEAD + source)
    spawns = "spawn" in source
    (port,) = held_ports(1)
    return run(script, [str(port)], 1 if spawns else 2, OBSERVER, OPTIONS, LIMITS)


def line_of(rank, source):
    lines = (HEAD + source).splitlines()
    return next(n for n, line in enumerate(lines, 1) if f"# rank {rank}" in line)


@pytest.mark.parametrize("name", sample(["if world > 1, a class, cuda"], SCRIPTS))
def test_a_hang_is_named_with_the_line_of_each_rank(tmp_path, name):
    source, rule = SCRIPTS[name]
    watched_run = watched(tmp_path, source)
    assert watched_run.hang is not None, (watched_run.trouble, watched_run.output)
    assert watched_run.hang.rule == rule
    lines = dict(enumerate(watched_run.hang.ranks))
    for rank in (0, 1):
        if f"# rank {rank}" in source:
            where = f"(script.py:{line_of(rank, source)}"
            assert where in lines[rank]
            assert where in watched_run.hang.cause
    assert "by peer" not in str(watched_run.trouble)


@pytest.mark.parametrize("name", sample(["sleeps"], SLOW))
def test_a_slow_rank_is_no_hang(tmp_path, name):
    watched_run = watched(tmp_path, SLOW_SCRIPT.format(deed=SLOW[name]))
    assert watched_run.hang is None and watched_run.trouble is None
    assert [report["steps"] for report in watched_run.reports] == [4, 4]


@pytest.mark.parametrize(("deed", "kept"), [("pass", True), ("time.sleep(1)", False)])
def test_a_rank_that_gets_no_core_is_not_still(deed, kept):
    """One that is ready beside others on its core does not wait for a rank; one that sleeps may."""
    core = {min(os.sched_getaffinity(0))}
    loops = f"import os, time\nos.sched_setaffinity(0, {core})\nprint(flush=True)\nwhile True: "
    start, output = [sys.executable, "-c"], {"stdout": subprocess.PIPE}
    processes = [
        subprocess.Popen([*start, loops + code], **output)
        for code in (deed, "pass", "pass", "pass")
    ]
    try:
        for process in processes:
            process.stdout.readline()  # it has started
        before = without_core(processes[0].pid)
        time.sleep(2)
        share = (without_core(processes[0].pid) - before) / 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert (share > STILL) == kept


def test_check_says_that_a_script_hangs(tmp_path):
    source = SCRIPTS["one rank raises"][0]
    (tmp_path / "script.py").write_text(HEAD + source.replace("raise ValueError", "sys.exit"))
    done = subprocess.run(
        [sys.executable, "-m", "d2lmgpu", "check", "--json", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 2 and answer["outcome"] == "not compared"
    for rank in (0, 1):
        assert f"script.py:{line_of(rank, source)}" in answer["reason"]


POLLS = (
    TRAINS
    + """
step()
if rank == 1:
    while not os.path.exists("ready"):
        time.sleep(0.1)  # rank 1
dist.barrier()  # rank 0
"""
)


def test_where_each_rank_was_is_told_of_what_may_yet_end(tmp_path):
    """Somebody may still write that file: no hang."""
    script = tmp_path / "script.py"
    script.write_text(HEAD + POLLS)
    result = run(script, [], 2, OBSERVER, OPTIONS, replace(LIMITS, seconds=8.0))
    assert result.hang is None
    for rank in (0, 1):
        assert f"(script.py:{line_of(rank, POLLS)}" in result.note
