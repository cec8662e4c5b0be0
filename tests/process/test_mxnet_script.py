"""The course's script for MXNet's roles begins with the same weights everywhere, and stays there.

Without the wait in ``begin_alike`` this fails in about one of four runs.
"""

import runpy
from pathlib import Path

import numpy as np

from d2lmgpu.launch import launch

SCRIPT = Path(__file__).parents[2] / "chapters" / "clusters" / "train_mxnet.py"
LAYERS, ROWS = 60, 5  # many keys: what is asked for last comes late


def updates(script, num):
    """All weights, which begin otherwise on each worker, before and after ``num`` updates."""
    import mxnet as mx
    from mxnet import gluon, np, npx

    page = runpy.run_path(script)
    npx.set_np()
    kv = mx.kv.create("dist_sync")
    mx.random.seed(kv.rank)
    net = gluon.nn.Sequential()
    for _ in range(LAYERS):
        net.add(gluon.nn.Dense(8, in_units=8))
    net.initialize(mx.init.Xavier())
    params = net.collect_params()
    page["begin_alike"](kv, params.values())
    start = [p.data().asnumpy() for p in params.values()]
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1}, kvstore=None)
    X, y = np.random.uniform(size=(ROWS, 8)).asnumpy(), np.arange(ROWS).asnumpy()
    for _ in range(num):
        page["step"](net, trainer, kv, X, y, list(range(ROWS)))
    return kv.rank, start, [p.data().asnumpy() for p in params.values()]


def test_all_workers_have_worker_0_s_weights_before_and_after_updates():
    results = launch(updates, str(SCRIPT), 3, num_processes=3, num_servers=2)
    assert [rank for rank, *_ in results] == [0, 1, 2]
    for _, start, end in results:
        for mine, first in zip(start + end, results[0][1] + results[0][2]):
            assert np.array_equal(mine, first)
    assert any(not np.array_equal(a, b) for a, b in zip(results[0][1], results[0][2]))
