"""Runs on several hosts compute what one process computes, and what comes back is by rank."""

import copy
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from torch.nn import functional as F

from d2lmgpu.launch import launch
from d2lmgpu.process import events

CHAPTER = Path(__file__).parents[2] / "chapters" / "concise" / "pytorch.ipynb"
HOSTS = ["n1", "n2"]


def page_functions(*names):
    """Functions of the page on DDP, as its reader has them."""
    from d2lmgpu.course import chapters

    return [chapters.load(CHAPTER)[name] for name in names]


def where_am_i(word):
    import os
    import socket

    from torch import distributed as dist

    from d2lmgpu import torch as d2l

    rank = dist.get_rank()
    print(f"{word} from rank {rank}")
    device = str(d2l.try_gpu(rank)), str(d2l.try_gpu(int(os.environ["LOCAL_RANK"])))
    total = torch.tensor([rank])
    dist.all_reduce(total)
    return rank, dist.get_world_size(), socket.gethostname(), device, int(total)


def test_ranks_hosts_and_results(cluster, capfd):
    results = launch(where_am_i, "hello", hosts=["n3", "n1"], num_processes=2)
    places = [(rank, host) for rank, host in enumerate(["n3", "n3", "n1", "n1"])]
    assert results == [(rank, 4, host, (f"cpu:{rank % 2}",) * 2, 6) for rank, host in places]
    assert capfd.readouterr().out == "hello from rank 0\n"
    assert cluster.left_at_last() == []


def three_updates(net, batches, lr, train_shard):
    from torch.nn.parallel import DistributedDataParallel

    net = DistributedDataParallel(net)
    trainer = torch.optim.SGD(net.parameters(), lr, momentum=0.9)
    for X, y in batches:
        train_shard(net, X, y, trainer)
    return torch.cat([p.detach().flatten() for p in net.parameters()]).numpy()


def test_two_hosts_of_two_workers_compute_what_one_process_computes(cluster):
    """The page's own step, float64, and batches that four workers cannot share evenly."""
    (train_shard,) = page_functions("train_shard")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(144, 10)
    ).double()
    batches = [(torch.rand(n, 1, 8, 8).double(), torch.randint(10, (n,))) for n in (9, 7, 3)]
    by_rank = launch(three_updates, net, batches, 0.1, train_shard, hosts=HOSTS, num_processes=2)
    alone, velocity = copy.deepcopy(net), None
    for X, y in batches:
        gradients = torch.autograd.grad(F.cross_entropy(alone(X), y), alone.parameters())
        velocity = (
            gradients if velocity is None else [0.9 * v + g for v, g in zip(velocity, gradients)]
        )
        with torch.no_grad():
            for p, v in zip(alone.parameters(), velocity):
                p -= 0.1 * v
    vector = torch.cat([p.detach().flatten() for p in alone.parameters()]).numpy()
    start = torch.cat([p.detach().flatten() for p in net.parameters()]).numpy()
    assert np.linalg.norm(vector - start) > 0.01 * np.linalg.norm(start)
    for gradient in by_rank:
        assert np.linalg.norm(gradient - vector) <= 1e-9 * np.linalg.norm(vector)
        assert np.array_equal(gradient, by_rank[0])


def test_the_page_s_worker_trains_on_two_hosts_and_reports_to_its_lab(
    cluster, monkeypatch, tmp_path, capfd
):
    monkeypatch.setenv("D2LMGPU_PROFILE", "test")
    from d2lmgpu import torch as d2l

    worker, resnet18 = page_functions("worker", "resnet18")
    train_iter, test_iter = d2l.load_data_fashion_mnist(64)
    reader, writer = os.pipe()
    monkeypatch.setenv(events.VARIABLE, f"/dev/fd/{writer}")
    monkeypatch.delenv("RANK", raising=False)
    capfd.readouterr()
    accuracies, seconds = launch(
        worker, resnet18(10, width=8), train_iter, test_iter, 0.1, 2, hosts=HOSTS, num_processes=1
    )[1]
    assert len(accuracies) == len(seconds) == 2
    printed = capfd.readouterr().out.splitlines()
    assert printed == [f"epoch {i}: test accuracy {a:.3f}" for i, a in enumerate(accuracies, 1)]
    all_events = [json.loads(line) for line in os.read(reader, 1 << 20).splitlines()]
    assert {event["event"] for event in all_events} == {"batch", "loss", "point"}
    assert all(abs(event["time"] - time.monotonic()) < 60 for event in all_events)
    assert cluster.left_at_last() == []


def test_a_large_function_and_a_large_result_pass(cluster):
    data = np.random.RandomState(0).rand(1_000_000)

    def worker():
        return data * 2

    for result in launch(worker, hosts=HOSTS, num_processes=1):
        assert np.array_equal(result, 2 * data)


def test_the_store_and_the_workers_listen_inside_only(cluster):

    def listening():
        """Addresses on which this process listens, from now to the end of the run."""
        while not ended.is_set():
            mine = psutil.Process().net_connections("inet")
            seen.update(p.laddr.ip for p in mine if p.status == "LISTEN")

    def worker():
        import psutil
        from torch import distributed as dist

        dist.barrier()
        addresses = [p.laddr.ip for p in psutil.net_connections("inet") if p.status == "LISTEN"]
        dist.barrier()
        return addresses

    seen, ended = set(), threading.Event()
    watch = threading.Thread(target=listening)
    watch.start()
    by_rank = launch(worker, hosts=HOSTS, num_processes=1)
    ended.set()
    watch.join()
    (bridge,) = psutil.net_if_addrs()[cluster.state["bridge"]][:1]
    assert seen == {bridge.address}
    for host, addresses in zip(HOSTS, by_rank):
        assert set(addresses) == {cluster.state["hosts"][host]["address"]}


@pytest.mark.parametrize("hosts", [[], "n1", ["n1", ""], ["-oProxyCommand=x"], [1], ["n1", "n1"]])
def test_hosts_that_cannot_be_are_refused_before_anything_starts(cluster, hosts):
    with pytest.raises(ValueError, match="hosts"):
        launch(print, hosts=hosts, num_processes=1)
