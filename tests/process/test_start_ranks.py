"""chapters/diagnosis/start_ranks.py: every rank has its say, and none outlives job or caller."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from soaking import sample
from traces import until

STARTER = Path(__file__).parents[2] / "chapters" / "diagnosis" / "start_ranks.py"
STUBBORN = """
import os, signal, subprocess
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("here", os.environ["RANK"])
subprocess.run(["sleep", "1000"])
"""


@pytest.fixture
def starter(traces):
    process = subprocess.Popen(
        [sys.executable, STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        process.kill()


def send(starter, path, script, num_ranks, limit, **environ):
    path.write_text(script)
    job = {"script": str(path), "num_ranks": num_ranks, "limit": limit, "environ": environ}
    print(json.dumps(job), file=starter.stdin, flush=True)


@pytest.mark.needs("root")
@pytest.mark.parametrize("num_ranks", sample(1, [2, 1, 3]))
def test_without_a_network_a_rank_says_what_it_prints_and_nothing_else(num_ranks, tmp_path):
    """PyTorch asks for the name of 127.0.0.1 and warns that there is none."""
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    script = "import torch.distributed as d\nd.init_process_group('gloo')\nprint('in')\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*alone, sys.executable, STARTER], **pipes) as starter:
        send(starter, tmp_path / "in.py", script, num_ranks, limit=60, GLOO_SOCKET_IFNAME="lo")
        ranks = json.loads(starter.stdout.readline())["ranks"]
        starter.stdin.close()
    assert [rank["output"] for rank in ranks] == ["in\n"] * num_ranks


def test_ranks_meet_and_each_has_its_own_end(starter, traces, tmp_path):
    script = """
import os, sys
import torch
from torch import distributed as dist
dist.init_process_group("gloo")
x = torch.tensor(float(dist.get_rank()))
dist.all_reduce(x)
print(x.item(), os.environ["COLOUR"], dist.get_debug_level().name)
dist.barrier()
if dist.get_rank() == 1:
    raise ValueError("no")
sys.exit(2 * dist.get_rank())
"""
    environ = {"GLOO_SOCKET_IFNAME": "lo", "COLOUR": "red", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    send(starter, tmp_path / "sums.py", script, num_ranks=3, limit=60, **environ)
    ranks = json.loads(starter.stdout.readline())["ranks"]
    assert [rank["code"] for rank in ranks] == [0, 1, 4]
    outputs = [rank["output"].splitlines() for rank in ranks]
    assert all(lines[0] == "3.0 red DETAIL" for lines in outputs)
    assert outputs[0][1:] == outputs[2][1:] == []
    assert outputs[1][1:3] == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path / "sums.py"}", line 11, in <module>',
    ]
    assert outputs[1][-1] == "ValueError: no"


def test_the_limit_ends_stubborn_ranks_and_what_they_started(starter, traces, tmp_path):
    send(starter, tmp_path / "stubborn.py", STUBBORN, num_ranks=2, limit=2)
    ranks = json.loads(starter.stdout.readline())["ranks"]
    assert ranks == [{"code": -9, "output": f"here {rank}\n"} for rank in range(2)]
    traces.assert_none(but=[starter.pid], seconds=5)
    starter.stdin.close()
    assert starter.wait(10) == 0


@pytest.mark.parametrize("end", sample(1, ["the starter is killed", "the input ends"]))
def test_no_rank_outlives_its_starter(starter, traces, tmp_path, end):
    send(starter, tmp_path / "stubborn.py", STUBBORN, num_ranks=2, limit=1000)
    logs = [tmp_path / f"stubborn.{rank}.log" for rank in range(2)]
    assert until(lambda: all(log.exists() and log.read_text() for log in logs), seconds=60)
    if end == "the input ends":
        starter.stdin.close()
        starter.wait(20)
        traces.assert_none()
    else:
        assert until(lambda: [p.name() for p in traces.processes()].count("sleep") == 2)
        ranks = [p for p in traces.processes() if p.name() != "sleep"]
        starter.kill()
        starter.wait()
        assert until(lambda: not any(p.is_running() for p in ranks)), "a rank is still there"
