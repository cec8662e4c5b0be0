"""Whatever a worker prints, the process that has started it stays small, and says the reason."""

import json
import re
import subprocess
import sys

import pytest
from soaking import soaked

from d2lmgpu.launch import LaunchError, launch

MB = 150
PROGRAM = """
import contextlib, json, os, resource, subprocess, sys

def flood(stream, end, own):
    piece = 5000 * (b"debug debug" + end)
    number = {mb} * 10**6 // len(piece)
    if own:
        for _ in range(number):
            os.write(stream, piece)
    else:
        code = "import os\\nfor _ in range({{}}): os.write({{}}, {{}} * 5000)"
        code = code.format(number, stream, piece[:12])
        subprocess.run([sys.executable, "-c", code])
    raise ValueError("the cause")

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000

def in_launch(rank, *args):
    from d2lmgpu.launch import launch, LaunchError
    def worker():
        import torch.distributed as dist
        if dist.get_rank() == rank:
            flood(*args)
        dist.barrier()
    before = peak()
    try:
        launch(worker, num_processes=2)
    except LaunchError as error:
        return before, str(error)

def in_lab(_, *args):
    from d2lmgpu.lab import runner
    from d2lmgpu.lab.pool import POOL
    def train(num_gpus, batch_size, lr):
        flood(*args)
    ends = []
    run = runner.Runner(on_end=ends.append)
    before = peak()
    run.start(train, num_gpus=1, batch_size=1, lr=0.1)
    run.wait()
    POOL.end_spare()
    return before, ends[0].message + ends[0].log

before, said = {call}
print(json.dumps({{"grown": peak() - before, "said": said}}), file=open({file!r}, "w"))
"""


def outcome(traces, call):
    """What the caller of ``call`` said, and by how many MB it grew."""
    file = traces.folder / "outcome"
    code = PROGRAM.format(mb=MB, call=call, file=str(file))
    (traces.folder / "program.py").write_text(code)
    subprocess.run(
        [sys.executable, traces.folder / "program.py"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    "call",
    [
        "in_launch(1, 1, b'\\n', True)",
        "in_lab(0, 2, b'\\n', False)",
        *soaked(
            "in_launch(1, 2, b' ', False)",
            "in_launch(0, 1, b' ', True)",
            "in_launch(0, 2, b'\\n', False)",
            "in_lab(0, 1, b' ', True)",
        ),
    ],
)
def test_a_flood_takes_no_memory_of_the_caller_and_hides_no_reason(traces, call):
    report = outcome(traces, call)
    assert report["grown"] <= 50
    assert "ValueError: the cause" in report["said"] and len(report["said"]) < 40_000
    traces.assert_none()


def test_a_flood_of_another_rank_takes_little_of_the_disk_and_hides_no_reason():
    def worker():
        import os
        from pathlib import Path

        import torch.distributed as dist
        from traces import until

        def taken():
            return log.stat().st_blocks * 512

        log = Path(os.environ["TMPDIR"], "log-1")
        if dist.get_rank() == 1:
            for _ in range(600):
                os.write(1, 10**6 * b"d")
                os.fdatasync(1)  # else the disk is asked for nothing yet
            print("the end", flush=True)
        dist.barrier()
        assert log.stat().st_size > 6 * 10**8
        until(lambda: taken() < 10**8)  # a fast disk takes 200 MB from one look to the next
        if dist.get_rank() == 1:
            raise ValueError(f"taken: {taken()}")

    with pytest.raises(LaunchError, match="taken: ") as raised:
        launch(worker, num_processes=2)
    assert int(re.search(r"taken: (\d+)", str(raised.value))[1]) < 10**8
    assert "the end" in str(raised.value)
