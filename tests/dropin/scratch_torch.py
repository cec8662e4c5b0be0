"""A chapter as D2L writes them, from scratch: LeNet on `num_gpus` devices, everything by hand."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from d2lmgpu import torch as d2l

torch.manual_seed(0)
shapes = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
params = [torch.randn(shape) * 0.05 for shape in shapes]
loss = nn.CrossEntropyLoss(reduction="none")


def lenet(X, params):
    h1 = F.relu(F.conv2d(input=X, weight=params[0], bias=params[1]))
    h1 = F.avg_pool2d(input=h1, kernel_size=(2, 2), stride=(2, 2))
    h2 = F.relu(F.conv2d(input=h1, weight=params[2], bias=params[3]))
    h2 = F.avg_pool2d(input=h2, kernel_size=(2, 2), stride=(2, 2))
    h3 = F.relu(torch.mm(h2.reshape(h2.shape[0], -1), params[4]) + params[5])
    return torch.mm(h3, params[6]) + params[7]


def get_params(params, device):
    new_params = [p.to(device) for p in params]
    for p in new_params:
        p.requires_grad_()
    return new_params


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)


def train_batch(X, y, device_params, devices, lr):
    X_shards, y_shards = d2l.split_batch(X, y, devices)
    ls = [
        loss(lenet(X_shard, device_W), y_shard).sum()
        for X_shard, y_shard, device_W in zip(X_shards, y_shards, device_params)
    ]
    for l in ls:  # noqa: E741
        l.backward()
    with torch.no_grad():
        for i in range(len(device_params[0])):
            allreduce([device_params[c][i].grad for c in range(len(devices))])
    for param in device_params:
        d2l.sgd(param, lr, X.shape[0])


def train(num_gpus, batch_size, lr):
    d2l.seed(0)
    train_iter, test_iter = d2l.load_data_fashion_mnist(batch_size)
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    device_params = [get_params([p.clone() for p in params], d) for d in devices]
    num_epochs = 2
    animator = d2l.Animator("epoch", "test acc", xlim=[1, num_epochs])
    timer = d2l.Timer()
    for epoch in range(num_epochs):
        timer.start()
        for X, y in train_iter:
            train_batch(X, y, device_params, devices, lr)
            d2l.synchronize()
        timer.stop()
        accuracy = d2l.evaluate_accuracy_gpu(
            lambda x: lenet(x, device_params[0]), test_iter, devices[0]
        )
        animator.add(epoch + 1, (accuracy,))
    print(
        f"test acc: {animator.Y[0][-1]:.2f}, {timer.avg():.1f} sec/epoch on {devices!s}",
        file=sys.stderr,
    )
    return torch.cat([p.detach().reshape(-1) for p in device_params[-1]]).numpy()
