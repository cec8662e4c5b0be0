"""Train LeNet on Fashion-MNIST with MXNet's ``dist_sync``, a worker for each device.

``clusters/jobs/mxnet.sbatch`` starts it on the nodes of a cluster, once for each worker, server and
scheduler. Without their environment it trains alone, to the same weights.
"""

import argparse
import os
import traceback

import numpy

from d2lmgpu import mxnet as d2l  # a server and the scheduler serve in here, and never come back

from mxnet import autograd, gluon, init, kvstore, np, npx, random
from mxnet.gluon import nn

from d2lmgpu.data.datasets import fashion_mnist

npx.set_np()


def parse_args():
    """The settings of a run; ``batch_size`` counts the examples of all workers together."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-train", type=int, default=6000)
    parser.add_argument("--num-test", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=120, help="of all workers together")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="a file for the weights, as NumPy writes arrays")
    return parser.parse_args()


def lenet():
    """LeNet without batch normalization."""
    net = nn.Sequential()
    net.add(
        nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D(2),
        nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D(2), nn.Flatten(),
        nn.Dense(128, activation="relu"), nn.Dense(10),
    )
    return net


def begin_alike(kv, params):
    """Give all workers the weights of worker 0.

    This waits until they are here. A ``Trainer`` with a ``dist_sync`` store asks for them in its
    first step and does not wait: a worker may push gradients before, and then gets their sum,
    which the servers keep under the same key, as its weights.
    """
    for i, p in enumerate(params):
        kv.broadcast(i, p.list_data()[0], out=p.list_data())
    npx.waitall()


def step(net, trainer, kv, X, y, rows):
    """One update for the global batch ``rows``, of which this worker takes its share."""
    params = list(net.collect_params().values())
    device = params[0].list_ctx()[0]
    mine = rows[kv.rank :: kv.num_workers]
    counts = len(mine) > 0  # of a small last batch somebody gets nothing: an example that counts 0
    mine = mine if counts else rows[:1]
    X, y = (np.array(data[mine], ctx=device) for data in (X, y))
    with autograd.record():
        loss = gluon.loss.SoftmaxCrossEntropyLoss()(net(X), y).sum() * counts
    loss.backward()
    for i, p in enumerate(params):  # the servers add up; the last layer's gradient is there first
        kv.pushpull(i, p.list_grad(), priority=-i)
    trainer.update(len(rows))  # divides the sum


def accuracy(net, X, y):
    """The part of the examples that ``net`` gets right."""
    device = next(iter(net.collect_params().values())).list_ctx()[0]
    parts = [slice(i, i + 500) for i in range(0, len(y), 500)]
    right = [net(np.array(X[p], ctx=device)).argmax(1).asnumpy() == y[p] for p in parts]
    return float(numpy.concatenate(right).mean())


def main(args):
    kv = kvstore.create("dist_sync" if "DMLC_ROLE" in os.environ else "local")
    device = d2l.try_gpu(int(os.environ.get("SLURM_LOCALID", 0)))
    images = fashion_mnist(args.num_train, args.num_test)
    random.seed(args.seed)
    net = lenet()
    net.initialize(init.Xavier(), ctx=device)
    net(np.array(images.X_train[:1], ctx=device))  # the layers learn their shapes
    begin_alike(kv, net.collect_params().values())
    # The servers add up and no more: the last batch of an epoch is divided by another number, of
    # which a server that updates would not hear. So the trainer has no store.
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": args.lr, "momentum": 0.9}, kvstore=None
    )
    for epoch in range(args.epochs):
        order = numpy.random.RandomState(args.seed + epoch).permutation(args.num_train)
        for i in range(0, len(order), args.batch_size):
            rows = order[i : i + args.batch_size]
            step(net, trainer, kv, images.X_train, images.y_train, rows)
        if kv.rank == 0:
            right = accuracy(net, images.X_test, images.y_test)
            print(f"epoch {epoch + 1}: test accuracy {right:.3f}", flush=True)
    if kv.rank == 0 and args.save:
        weights = {n: p.data(device).asnumpy() for n, p in net.collect_params().items()}
        numpy.savez(f"{args.save}.part.npz", **weights)
        os.replace(f"{args.save}.part.npz", args.save)  # whole, or not there
    npx.waitall()  # what this worker has pushed must have left it before the store is given up


if __name__ == "__main__":
    try:
        main(parse_args())
    except Exception:
        # A worker that ends as a program does says good-bye, and waits for the others to do so.
        traceback.print_exc()
        os._exit(1)
