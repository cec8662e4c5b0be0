"""Batches from arrays that stay in memory, in an order set by a seed."""

import numpy as np

from d2lmgpu.devices import is_count
from d2lmgpu.events import report
from d2lmgpu.helpers import resize_images

_seed = 0


def set_seed(n: int) -> None:
    """Set the seed from which every later ``DataIter`` draws its order."""
    global _seed
    _seed = n


class DataIter:
    """Iterate over ``(X, y)`` in batches; the last batch is kept, however small.

    ``X`` (n, …) and ``y`` (n,) are NumPy arrays of equal length, ``convert`` turns a NumPy batch
    into the framework's array. With ``shuffle`` each epoch has its own order, which depends only
    on the seed and on the number of the epoch: both frameworks see the same batches. For training,
    ``batch_size`` is at most n; a test set may be smaller than a batch.
    """

    def __init__(self, X, y, batch_size, shuffle, convert):
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples and y has {len(y)}: give as many of each.")
        if not is_count(batch_size):
            raise ValueError(f"batch_size={batch_size!r}: give a whole number from 1 up.")
        if shuffle and batch_size > len(y):
            raise ValueError(
                f"batch_size={batch_size} is above the {len(y)} examples there are: "
                f"give a batch of at most {len(y)}."
            )
        self.X, self.y, self.batch_size = X, y, batch_size
        self.shuffle, self.convert = shuffle, convert
        self.num_samples, self.epoch, self.seed = len(y), 0, _seed

    def __len__(self):
        return -(-self.num_samples // self.batch_size)

    def __iter__(self):
        order = np.arange(self.num_samples)
        if self.shuffle:
            np.random.RandomState([self.seed, self.epoch]).shuffle(order)
            self.epoch += 1
        for start in range(0, self.num_samples, self.batch_size):
            rows = order[start : start + self.batch_size]
            self._rows, self._done = len(rows), start + len(rows)
            yield self.convert(self.X[rows]), self.convert(self.y[rows])
            if self.shuffle:  # a training batch is done
                report("batch", every=0.1, epoch=self.epoch, done=start + len(rows), of=len(order))

    def report_loss(self, losses):
        """Tell the lab the loss of the present batch: ``losses`` has one sum for each shard.

        They are read only where a lab listens, and five times a second at most: to read a number
        is to wait for its device.
        """
        rows, x = self._rows, self.epoch - 1 + self._done / self.num_samples
        report("loss", every=0.2, x=x, loss=lambda: sum(map(float, losses)) / rows)


def iterators(dataset, profile, batch_size, resize, convert):
    """``(train_iter, test_iter)`` over as many images of ``dataset`` as ``profile`` says.

    ``resize`` is a new side in pixels or None; only the training set is shuffled.
    """

    def over(X, y, n, shuffle):
        return DataIter(resize_images(X[:n], resize), y[:n], batch_size, shuffle, convert)

    return (
        over(dataset.X_train, dataset.y_train, profile.num_train, True),
        over(dataset.X_test, dataset.y_test, profile.num_test, False),
    )
