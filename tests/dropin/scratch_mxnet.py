"""A chapter as D2L writes them, from scratch: LeNet on `num_gpus` devices, everything by hand."""

import sys

from d2lmgpu import mxnet as d2l  # isort: skip
import mxnet as mx
from mxnet import autograd, gluon, np, npx

npx.set_np()
mx.random.seed(0)
shapes = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
params = [np.random.normal(scale=0.05, size=shape) for shape in shapes]
loss = gluon.loss.SoftmaxCrossEntropyLoss()


def convolution(X, weight, bias, kernel, num_filter):
    return npx.convolution(data=X, weight=weight, bias=bias, kernel=kernel, num_filter=num_filter)


def lenet(X, params):
    h1 = npx.relu(convolution(X, params[0], params[1], (3, 3), 20))
    h1 = npx.pooling(data=h1, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h2 = npx.relu(convolution(h1, params[2], params[3], (5, 5), 50))
    h2 = npx.pooling(data=h2, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h3 = npx.relu(np.dot(h2.reshape(h2.shape[0], -1), params[4]) + params[5])
    return np.dot(h3, params[6]) + params[7]


def get_params(params, device):
    new_params = [p.copyto(device) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].ctx)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


def split_batch(X, y, devices):
    return gluon.utils.split_and_load(X, devices), gluon.utils.split_and_load(y, devices)


def train_batch(X, y, device_params, devices, lr):
    X_shards, y_shards = split_batch(X, y, devices)
    with autograd.record():
        losses = [
            loss(lenet(X_shard, device_W), y_shard)
            for X_shard, y_shard, device_W in zip(X_shards, y_shards, device_params)
        ]
    for l in losses:  # noqa: E741
        l.backward()
    for i in range(len(device_params[0])):
        allreduce([device_params[c][i].grad for c in range(len(devices))])
    for param in device_params:
        d2l.sgd(param, lr, X.shape[0])


def train(num_gpus, batch_size, lr):
    d2l.seed(0)
    train_iter, test_iter = d2l.load_data_fashion_mnist(batch_size)
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    device_params = [get_params(params, d) for d in devices]
    num_epochs = 2
    animator = d2l.Animator("epoch", "test acc", xlim=[1, num_epochs])
    timer = d2l.Timer()
    for epoch in range(num_epochs):
        timer.start()
        for X, y in train_iter:
            train_batch(X, y, device_params, devices, lr)
            npx.waitall()
        timer.stop()
        accuracy = d2l.evaluate_accuracy_gpu(
            lambda x: lenet(x, device_params[0]), test_iter, devices[0]
        )
        animator.add(epoch + 1, (accuracy,))
    print(
        f"test acc: {animator.Y[0][-1]:.2f}, {timer.avg():.1f} sec/epoch on {devices!s}",
        file=sys.stderr,
    )
    return np.concatenate([p.reshape(-1) for p in device_params[-1]]).asnumpy()
