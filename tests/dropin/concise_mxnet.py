"""A chapter as D2L writes them, concise: residual blocks, Gluon's Trainer, all devices at once."""

import sys

from d2lmgpu import mxnet as d2l  # isort: skip
import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()


def resnet(num_classes):
    net = nn.Sequential()
    net.add(nn.Conv2D(8, kernel_size=3, strides=2, padding=1), nn.Activation("relu"))
    net.add(d2l.Residual(8), d2l.Residual(16, use_1x1conv=True, strides=2))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(num_classes))
    return net


def evaluate_accuracy_gpus(net, data_iter, split_f=d2l.split_batch):
    devices = list(net.collect_params().values())[0].list_ctx()  # noqa: RUF015
    metric = d2l.Accumulator(2)
    for features, labels in data_iter:
        X_shards, y_shards = split_f(features, labels, devices)
        pred_shards = [net(X_shard) for X_shard in X_shards]
        right = sum(float(d2l.accuracy(p, y)) for p, y in zip(pred_shards, y_shards))
        metric.add(right, labels.size)
    return metric[0] / metric[1]


def train(num_gpus, batch_size, lr):
    d2l.seed(0)
    mx.random.seed(0)
    net = resnet(10)
    train_iter, test_iter = d2l.load_data_fashion_mnist(batch_size)
    ctx = [d2l.try_gpu(i) for i in range(num_gpus)]
    net.initialize(init=init.Xavier(), ctx=ctx, force_reinit=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    timer, num_epochs = d2l.Timer(), 2
    animator = d2l.Animator("epoch", "test acc", xlim=[1, num_epochs])
    for epoch in range(num_epochs):
        timer.start()
        for features, labels in train_iter:
            X_shards, y_shards = d2l.split_batch(features, labels, ctx)
            with autograd.record():
                losses = [
                    loss(net(X_shard), y_shard) for X_shard, y_shard in zip(X_shards, y_shards)
                ]
            for l in losses:  # noqa: E741
                l.backward()
            trainer.step(batch_size)
        npx.waitall()
        timer.stop()
        ours, theirs = (
            evaluate(net, test_iter)
            for evaluate in (d2l.evaluate_accuracy_gpus, evaluate_accuracy_gpus)
        )
        assert ours == theirs
        animator.add(epoch + 1, (theirs,))
    print(
        f"test acc: {animator.Y[0][-1]:.2f}, {timer.avg():.1f} sec/epoch on {ctx!s}",
        file=sys.stderr,
    )
    weights = [p.data(ctx[-1]) for p in net.collect_params().values() if p.grad_req != "null"]
    return np.concatenate([w.reshape(-1).as_in_ctx(d2l.cpu()) for w in weights]).asnumpy()
