"""Batches from arrays that stay in memory, in an order set by a seed."""

import numpy as np

from d2lmgpu.machine.checks import is_count
from d2lmgpu.machine.seed import current_seed
from d2lmgpu.process.events import report
from d2lmgpu.process.lanes import LISTENER


class DataIter:
    """Iterate over ``(X, y)`` in batches; the last batch is kept, however small.

    With ``shuffle`` each epoch has its own order, which depends only on the seed and on the number
    of the epoch: both frameworks see the same batches.

    Parameters
    ----------
    X : numpy.ndarray, (n, …)
    y : numpy.ndarray, (n,)
    batch_size : int
        For training at most n; a test set may be smaller than a batch.
    shuffle : bool
        Whether it is for training.
    convert : callable
        Turns a NumPy batch into the framework's array.

    Raises
    ------
    ValueError
        For unlike lengths, and for another ``batch_size``.
    """

    def __init__(self, X, y, batch_size, shuffle, convert):
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples and y has {len(y)}: give as many of each.")
        if not is_count(batch_size):
            raise ValueError(f"batch_size={batch_size!r}: give a whole number from 1 up.")
        if shuffle and batch_size > len(y):
            raise ValueError(f"batch_size={batch_size} is above the {len(y)} examples: give less.")
        self.X = X
        self.y = y
        self.batch_size = batch_size
        self.shuffle, self.convert = shuffle, convert
        self.num_samples = len(y)
        self.epoch = 0
        self.seed = current_seed()

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
            if self.shuffle:
                LISTENER.begin(len(rows))
            X, y = self.convert(self.X[rows]), self.convert(self.y[rows])
            if self.shuffle:
                LISTENER.loaded()
            yield X, y
            if self.shuffle:  # a training batch is done
                LISTENER.end()
                every = 0.1 if self._done < self.num_samples else 0.0  # an epoch's end is told
                report(
                    "batch",
                    every,
                    epoch=self.epoch,
                    done=self._done,
                    of=self.num_samples,
                    steps=LISTENER.totals,
                )

    def report_loss(self, losses) -> None:
        """Tell the lab the loss of the present batch.

        The losses are read only where a lab listens, and five times a second at most: to read a
        number is to wait for its device.

        Parameters
        ----------
        losses : list
            One for each shard, summed over its examples.
        """
        rows, x = self._rows, self.epoch - 1 + self._done / self.num_samples
        report("loss", every=0.2, x=x, loss=lambda: sum(map(float, losses)) / rows)


def resize_images(X, side) -> np.ndarray:
    """Images ``X`` (n, 1, h, w), bilinearly scaled to ``side`` x ``side`` (None: as they are)."""
    if side is None:
        return X
    if not is_count(side):
        raise ValueError(f"resize={side!r}: give the new side in pixels, from 1 up.")
    from PIL import Image

    size = (int(side), int(side))
    scaled = [Image.fromarray(x[0]).resize(size, Image.Resampling.BILINEAR) for x in X]
    return np.stack(scaled)[:, None]


def iterators(dataset, profile, batch_size, resize, convert) -> tuple[DataIter, DataIter]:
    """``(train_iter, test_iter)`` over as many images of ``dataset`` as ``profile`` says.

    ``resize`` is a new side in pixels or None; only the training set is shuffled.
    """

    def over(X, y, n, shuffle):
        return DataIter(resize_images(X[:n], resize), y[:n], batch_size, shuffle, convert)

    return (
        over(dataset.X_train, dataset.y_train, profile.num_train, True),
        over(dataset.X_test, dataset.y_test, profile.num_test, False),
    )
