"""D2L's own loader and multi-GPU loop (``train_ch13``) in MXNet, without anything of ours set.

In a process of its own, since our backend's settings hold for the whole process. Prints samples/s
of LeNet on one device.
"""

import contextlib
import io

from benchmarks.measure import Timed

from mxnet import gluon, npx  # isort: skip
from mxnet.gluon import nn  # isort: skip


def main(batch_size=256):
    import d2l.mxnet as book

    # The files are the data set's own, packed again: their content is right, their SHA-1 is not.
    gluon.utils.check_sha1 = gluon.data.vision.datasets.check_sha1 = lambda path, sha1: True
    npx.set_np()
    net = nn.Sequential()
    net.add(
        nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D(2, 2),
        nn.Dense(128, activation="relu"), nn.Dense(10),
    )  # fmt: skip
    device = [book.try_gpu(0)]
    net.initialize(ctx=device)
    with contextlib.redirect_stdout(io.StringIO()):
        train_iter, test_iter = book.load_data_fashion_mnist(batch_size)
        timed = Timed(train_iter, npx.waitall)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        first_test_batch = [next(iter(test_iter))]
        book.train_ch13(net, timed, first_test_batch, loss, trainer, 1, device)
    return timed.rate


if __name__ == "__main__":
    print(main())
