"""MXNet's workers, servers and scheduler on hosts: they compute what one process computes, and the
death of any of them is told by role and host."""

import os

import numpy as np
import psutil
import pytest
from mxnet_ends import HOSTS, ends, pushes

from d2lmgpu.launch import LaunchError, launch


def updates(start, batches, lr):
    """SGD on tanh(X A) B with squared error, by MXNet; each worker has every fourth example."""
    import mxnet as mx

    kv = mx.kv.create("dist_sync")
    params = [mx.nd.array(p) for p in start]
    for i, p in enumerate(params):
        p.attach_grad()
        kv.init(i, p.grad)
    for X, y in batches:
        mine = slice(kv.rank, None, kv.num_workers)
        for p in params:
            p.grad[:] = 0
        if len(X[mine]):  # of a small last batch somebody gets nothing
            with mx.autograd.record():
                hidden = mx.nd.tanh(mx.nd.dot(mx.nd.array(X[mine]), params[0]))
                error = mx.nd.dot(hidden, params[1]) - mx.nd.array(y[mine])
                loss = (error**2).sum()
            loss.backward()
        for i, p in enumerate(params):
            kv.push(i, p.grad)
            kv.pull(i, out=p.grad)
            p -= lr / len(X) * p.grad
    return [p.asnumpy() for p in params]


def alone(start, batches, lr):
    """The same in NumPy, in one process."""
    A, B = (p.copy() for p in start)
    for X, y in batches:
        hidden = np.tanh(X @ A)
        error = 2 * (hidden @ B - y)
        back = error @ B.T * (1 - hidden**2)
        A, B = A - lr / len(X) * X.T @ back, B - lr / len(X) * hidden.T @ error
    return A, B


def test_two_hosts_of_two_workers_compute_what_one_process_computes(cluster):
    """Ten updates in float32, to which ``dist_sync`` rounds whatever is sent."""
    g = np.random.RandomState(0)
    start = [g.randn(12, 8), g.randn(8, 3)]
    batches = [(g.randn(n, 12), g.randn(n, 3)) for n in (9, 7, 3, 8, 9, 5, 2, 6, 9, 1)]
    expected = alone(start, batches, 0.05)
    assert all(np.linalg.norm(e - s) > 0.01 * np.linalg.norm(s) for e, s in zip(expected, start))
    by_rank = launch(updates, start, batches, 0.05, hosts=HOSTS, num_processes=2, num_servers=2)
    for result in by_rank:
        for array, right, first in zip(result, expected, by_rank[0]):
            assert np.linalg.norm(array - right) <= 1e-5 * np.linalg.norm(right)
            assert np.array_equal(array, first)
    assert cluster.left_at_last() == []


def who_am_i():
    import socket

    import mxnet as mx

    kv = mx.kv.create("dist_sync")
    kv.init(0, mx.nd.zeros(2))
    kv.push(0, mx.nd.ones(2) * kv.rank)
    total = mx.nd.zeros(2)
    kv.pull(0, out=total)
    print(f"rank {kv.rank}")
    listening = {
        (p.laddr.ip, psutil.Process(p.pid).cmdline()[-1] == "mxnet")
        for p in psutil.net_connections("inet")
        if p.status == "LISTEN" and p.laddr.port != 22
    }
    numbers = [int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")]
    return kv.rank, numbers, socket.gethostname(), total.asnumpy().tolist(), listening


def test_kv_s_ranks_are_launch_s_and_nothing_listens_outside(cluster, capfd):
    results = launch(who_am_i, hosts=["n1", "n3", "n2"], num_processes=2, num_servers=1)
    assert capfd.readouterr().out == "rank 0\n"
    for rank, (kv_rank, numbers, host, total, listening) in enumerate(results):
        assert (kv_rank, numbers, total) == (rank, [rank, rank % 2, 6], [15.0, 15.0])
        assert host == ["n3", "n2", "n1"][rank // 2]
        assert listening == {(cluster.state["hosts"][host]["address"], True)}
    assert cluster.left_at_last() == []


@pytest.mark.soak
def test_when_a_worker_raises_all_end_and_the_cause_is_told(cluster):
    with pytest.raises(LaunchError) as caught:
        launch(pushes, 3, None, 0, "", hosts=HOSTS, num_processes=2, num_servers=2)
    assert str(caught.value).startswith("Worker 3 of 4, on n1, raised ValueError: my shard is empt")
    assert cluster.left_at_last() == []


def test_when_a_worker_is_killed_all_end_and_it_is_told(cluster, tmp_path):
    """The other roles are in ``soak_failures.py``."""
    ends(cluster, tmp_path, "worker")
