"""What a rank raises that the script has started by itself: told, and raised in its parent, too."""

import pytest

from d2lmgpu.process.addresses import held_ports
from d2lmgpu.watch.check.run import OBSERVER
from d2lmgpu.watch.run import run

RANK = """
import sys, torch
from torch import distributed as dist, multiprocessing as mp

def main(rank):
    meeting = f"tcp://127.0.0.1:{sys.argv[1]}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=1)
    assert dist.get_world_size() > 1, "one part is not enough"

if __name__ == "__main__":
"""
STARTS = {
    "mp.spawn": """
    try:
        mp.spawn(main, nprocs=1)
    except mp.ProcessRaisedException as error:
        print("its parent:", "one part is not enough" in str(error))
""",
    "Process": """
    process = mp.get_context("spawn").Process(target=main, args=(0,))
    process.start()
    process.join()
    print("its parent:", process.exitcode == 1)
""",
}


@pytest.mark.parametrize("case", STARTS)
def test_a_spawned_rank_that_raises_is_told_with_its_line(tmp_path, case):
    script = tmp_path / "train.py"
    script.write_text(RANK + STARTS[case], encoding="utf-8")
    options = {"double": True, "short": True, "devices": 1}
    (port,) = held_ports(1)
    watched = run(script, [str(port)], 1, OBSERVER, options)
    line = RANK[: RANK.index("    assert")].count("\n") + 1
    assert "one part is not enough" in watched.trouble and f"train.py:{line}" in watched.explanation
    assert watched.last_line == "its parent: True"
