"""``parallel`` on several CPU devices waits for the engine."""

import pytest

from d2lmgpu import mxnet as d2l  # first: it sets the threads of MXNet

from mxnet import np, npx  # isort: skip


def test_what_fails_after_it_was_queued_is_raised_by_parallel():
    def queue(std):
        return np.random.normal(0, std, (2, 2))

    queue(-1.0)  # no error yet: it is only queued
    with pytest.raises(ValueError):
        npx.waitall()
    with pytest.raises(ValueError):
        d2l.parallel(queue, [1.0, -1.0])
    npx.waitall()
