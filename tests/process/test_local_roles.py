"""MXNet's workers, servers and scheduler on this machine: one call, and nothing is left of them."""

import inspect
import os
import signal
import subprocess
import sys

import psutil
import pytest
from soaking import sample

from d2lmgpu.launch import LaunchError, launch


def sum_of_ranks(keep):
    import mxnet as mx

    kv = mx.kv.create("dist_sync")
    if keep:  # then it never says good-bye to the others
        mx.kept = kv
    kv.init(0, mx.nd.zeros(3))
    total = mx.nd.zeros(3)
    kv.push(0, mx.nd.ones(3) * (kv.rank + 1))
    kv.pull(0, out=total)
    print("rank", kv.rank)
    addresses = [p.laddr.ip for p in psutil.Process().net_connections() if p.status == "LISTEN"]
    return kv.rank, os.environ["RANK"], total.asnumpy().tolist(), set(addresses)


@pytest.mark.parametrize(("num_servers", "keep"), sample(1, [(2, True), (1, False)]))
def test_results_come_by_rank_and_nothing_is_left(traces, capfd, num_servers, keep):
    results = launch(sum_of_ranks, keep, num_processes=2, num_servers=num_servers)
    assert results == [(rank, str(rank), [3.0] * 3, {"127.0.0.1"}) for rank in (0, 1)]
    assert capfd.readouterr().out == "rank 0\n"
    traces.assert_none()


def waits(victim):
    import mxnet as mx

    kv = mx.kv.create("dist_sync")
    if kv.rank == 0:
        supervisor = os.getppid()  # whose children this has in the order in which they were born
        with open(f"/proc/{supervisor}/task/{supervisor}/children") as siblings:
            os.kill(int(siblings.read().split()[victim]), signal.SIGKILL)
    kv.init(0, mx.nd.zeros(3))
    kv.push(0, mx.nd.ones(3))
    mx.nd.waitall()


@pytest.mark.parametrize(
    ("victim", "words"),
    sample(1, [(2, "Server 0 of 1 was"), (1, "Worker 1 of 2 was"), (3, "The scheduler was")]),
)
def test_the_one_that_died_is_named(traces, victim, words):
    with pytest.raises(LaunchError, match=rf"^{words} killed by SIGKILL"):
        launch(waits, victim, num_processes=2, num_servers=1)
    traces.assert_none()


@pytest.mark.parametrize("num_servers", [0, -1, 1.5, True, "2"])
def test_a_number_of_servers_that_is_none_is_refused(num_servers):
    with pytest.raises(ValueError, match="num_servers"):
        launch(dict, num_processes=1, num_servers=num_servers)


DRAWN = """
import socket
from d2lmgpu.process.addresses import held_ports

ports = [port for _ in range(400) for port in held_ports(2)]
print(len(set(ports)))
for port in ports[::40]:
    socket.create_server(("127.0.0.1", port)).close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port that another takes")
def test_a_port_that_is_held_is_given_to_nobody_and_can_be_listened_at():
    drawn = subprocess.run([sys.executable, "-c", DRAWN], capture_output=True, text=True)
    assert (drawn.stdout, drawn.stderr) == ("800\n", "")


def knows_roles():
    return "d2lmgpu.process.roles" in sys.modules


PLAIN = f"""
import sys
from d2lmgpu.launch import launch

{inspect.getsource(knows_roles)}
print(launch(knows_roles, num_processes=1), knows_roles())
"""


def test_a_launch_without_servers_does_not_read_mxnets_roles():
    script = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True)
    assert (script.stdout, script.stderr) == ("[False] False\n", "")
    assert launch(knows_roles, num_processes=1, num_servers=1) == [True]
