"""A chapter as D2L writes them, concise: residual blocks, DataParallel, torch's own optimizer."""

import sys

import torch
from torch import nn

from d2lmgpu import torch as d2l


def resnet(num_classes):
    net = nn.Sequential(nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1), nn.ReLU())
    net.add_module("first", d2l.Residual(8))
    net.add_module("second", d2l.Residual(16, use_1x1conv=True, strides=2))
    net.add_module("pool", nn.AdaptiveAvgPool2d((1, 1)))
    net.add_module("head", nn.Sequential(nn.Flatten(), nn.Linear(16, num_classes)))
    return net


def init_weights(module):
    if type(module) in [nn.Linear, nn.Conv2d]:
        nn.init.normal_(module.weight, std=0.1)


def train(num_gpus, batch_size, lr):
    d2l.seed(0)
    net = resnet(10)
    net(torch.zeros(1, 1, 28, 28))
    train_iter, test_iter = d2l.load_data_fashion_mnist(batch_size)
    devices = [d2l.try_gpu(i) for i in range(num_gpus)]
    net.apply(init_weights)
    net = nn.DataParallel(net, device_ids=devices)
    trainer = torch.optim.SGD(net.parameters(), lr)
    loss = nn.CrossEntropyLoss()
    timer, num_epochs = d2l.Timer(), 2
    animator = d2l.Animator("epoch", "test acc", xlim=[1, num_epochs])
    for epoch in range(num_epochs):
        net.train()
        timer.start()
        for X, y in train_iter:
            trainer.zero_grad()
            X, y = X.to(devices[0]), y.to(devices[0])
            loss(net(X), y).backward()
            trainer.step()
        timer.stop()
        animator.add(epoch + 1, (d2l.evaluate_accuracy_gpu(net, test_iter),))
    print(
        f"test acc: {animator.Y[0][-1]:.2f}, {timer.avg():.1f} sec/epoch on {devices!s}",
        file=sys.stderr,
    )
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()]).numpy()
