"""``doctor --links`` between hosts whose links have known rates, one of which is slow."""

import socket
import subprocess
from time import perf_counter

import pytest

from d2lmgpu.__main__ import main
from d2lmgpu.course import links
from d2lmgpu.launch import launch
from d2lmgpu.process.cluster import box

SIZE = 2**22


def by_sockets(size):
    """Bytes a second from rank 0 to rank 1, by plain sockets and without PyTorch's messages."""
    from torch import distributed as dist

    rank = dist.get_rank()
    place = [None]
    if rank == 1:
        server = socket.create_server(("0.0.0.0", 0))
        name = socket.gethostbyname(socket.gethostname())
        place = [(name, server.getsockname()[1])]
    dist.broadcast_object_list(place, 1)
    if rank == 1:
        connection, _ = server.accept()
        for _ in range(5):
            left = size
            while left:
                left -= len(connection.recv(min(left, 2**18)))
            connection.sendall(b"!")
        return None
    seconds = []
    with socket.create_connection(place[0]) as connection:
        for _ in range(5):
            start = perf_counter()
            connection.sendall(bytes(size))
            connection.recv(1)
            seconds.append(perf_counter() - start)
    return size / min(seconds)  # what other programs take of a core only makes it longer


@pytest.mark.parametrize("rate", ["100mbit", "1gbit"])
def test_links_of_two_rates_are_measured_as_by_plain_sockets(rate, two_hosts):
    box.rate(rate)
    measured = links.measure(1, ["n1", "n2"])
    assert measured.hosts == ["n1", "n2"]
    (expected, _) = launch(by_sockets, SIZE, hosts=["n1", "n2"], num_processes=1)
    assert measured.pairs[0, 1][1] == pytest.approx(expected, rel=0.1)
    assert measured.bus_bandwidth(-1) == pytest.approx(expected, rel=0.25)


def test_a_host_behind_a_slow_link_and_with_little_shared_memory_is_named(three_hosts, capsys):
    box.rate("1gbit")
    three_hosts.rate("n3", "100mbit")
    for host, size in (("n1", "8g"), ("n2", "8g"), ("n3", "64m")):
        inside = ["nsenter", "-t", str(three_hosts.first(host)), "-m"]
        memory = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", "/dev/shm"]
        subprocess.run([*inside, *memory], check=True)
    assert main(["doctor", "--links", "--hosts", "n1,n2,n3"]) == 1
    slow, little = capsys.readouterr().out.splitlines()[-2:]
    assert slow.startswith("host n3: all its links carry about")
    assert little.startswith("host n3: /dev/shm has 64 MiB")
