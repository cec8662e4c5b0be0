"""Networks and steps of other people whose memory is published, see published_memory.csv.

Written after their descriptions, as far as memory is concerned: widths, depths, dropout, norms, the
loss.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from benchmarks.published_texts import BERT, GPT2, DistilBERT, labelled, next_token, tokens
from d2lmgpu.backend import _let_torchvision_import

_let_torchvision_import()

from torchvision import models  # noqa: E402


def images(side, classes=1000) -> Callable:
    sides = side if isinstance(side, tuple) else (side, side)
    return lambda n: (torch.rand(n, 3, *sides), torch.randint(classes, (n,)))


def pixels(side, classes) -> Callable:
    """Images whose labels are one a pixel."""
    sides = side if isinstance(side, tuple) else (side, side)
    return lambda n: (torch.rand(n, 3, *sides), torch.randint(classes, (n, *sides)))


def cross_entropy(net, X, y) -> torch.Tensor:
    return F.cross_entropy(net(X), y)


def cleared_late(net, X, y) -> torch.Tensor:
    """The gradients of the step before are there until the loss is known."""
    loss = cross_entropy(net, X, y)
    net.zero_grad()
    return loss


class ClearedByTheLoss(torch.optim.Adam):
    def zero_grad(self, set_to_none=True) -> None:
        pass


class FilledWithZeros:
    """Gradients stay where they are, as before PyTorch 2."""

    def zero_grad(self, set_to_none=True) -> None:
        super().zero_grad(set_to_none=False)


class MomentumOfOld(FilledWithZeros, torch.optim.SGD):
    pass


class AdamWOfOld(FilledWithZeros, torch.optim.AdamW):
    pass


def vit() -> nn.Module:
    net = models.vit_l_16()
    net.heads.head = nn.Linear(1024, 10)
    return net


def sharded_vit() -> FullyShardedDataParallel:
    """By the first FSDP, block by block, each of them recomputed."""
    blocks = {models.vision_transformer.EncoderBlock}
    net = FullyShardedDataParallel(vit(), auto_wrap_policy=ModuleWrapPolicy(blocks))
    for block in net.modules():
        if type(block) in blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    return net


def with_two_heads(net, X, y) -> torch.Tensor:
    outputs = net(X)
    return F.cross_entropy(outputs["out"], y) + 0.5 * F.cross_entropy(outputs["aux"], y)


def fcn() -> "FCN":
    return models.segmentation.fcn_resnet50(weights_backbone=None, aux_loss=True, num_classes=21)


def convolution(inputs, outputs, kernel=3) -> nn.Module:
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def two_convolutions(inputs, outputs) -> nn.Module:
    return nn.Sequential(convolution(inputs, outputs), convolution(outputs, outputs))


class UNet(nn.Module):
    """S5-D16 with an FCN head and an auxiliary one."""

    def __init__(self, classes):
        super().__init__()
        widths = [64 * 2**i for i in range(5)]
        self.down = nn.ModuleList([two_convolutions(3, 64)])
        for before, width in pairwise(widths):
            self.down.append(nn.Sequential(nn.MaxPool2d(2), two_convolutions(before, width)))
        larger = nn.Upsample(scale_factor=2, mode="bilinear")
        self.up = nn.ModuleList(
            nn.Sequential(larger, convolution(2 * width, width, 1)) for width in widths[:4]
        )
        self.join = nn.ModuleList(two_convolutions(2 * width, width) for width in widths[:4])
        self.heads = nn.ModuleList(
            nn.Sequential(convolution(width, 64), nn.Dropout2d(0.1), nn.Conv2d(64, classes, 1))
            for width in widths[:2]
        )

    def forward(self, X) -> tuple:
        kept, nodes = [], {}
        for layer in self.down:
            X = layer(X)
            kept.append(X)
        for i in (3, 2, 1, 0):
            nodes[i] = X = self.join[i](torch.cat([kept[i], self.up[i](X)], 1))
        return self.heads[0](nodes[0]), self.heads[1](nodes[1])


def of_each_pixel(net, X, y) -> torch.Tensor | int:
    total = 0
    for weight, scores in zip((1, 0.4), net(X)):
        scores = F.interpolate(scores, size=y.shape[1:], mode="bilinear")
        total = total + weight * F.cross_entropy(scores, y, reduction="none").mean()
    return total


class FCN(nn.Module):
    """A dilated ResNet with two heads; ``deep`` has three convolutions at its start for one."""

    def __init__(self, resnet, deep, classes=19):
        super().__init__()
        net = resnet(replace_stride_with_dilation=[False, True, True])
        first = nn.Sequential(net.conv1, net.bn1, net.relu)
        if deep:
            halved = convolution(3, 32)
            halved[0].stride = (2, 2)
            first = nn.Sequential(halved, convolution(32, 32), convolution(32, 64))
        self.stages = nn.Sequential(first, net.maxpool, net.layer1, net.layer2, net.layer3)
        self.last = net.layer4
        self.convolutions = two_convolutions(2048, 512)
        self.joined = convolution(2048 + 512, 512)
        self.beside = convolution(1024, 256)
        self.classifiers = nn.ModuleList(
            nn.Sequential(nn.Dropout2d(0.1), nn.Conv2d(width, classes, 1)) for width in (512, 256)
        )

    def forward(self, X) -> tuple:
        H = self.stages(X)
        last = self.last(H)
        joined = self.joined(torch.cat([last, self.convolutions(last)], 1))
        return self.classifiers[0](joined), self.classifiers[1](self.beside(H))


class SimCLR(nn.Module):
    """ResNet-50 for images of 32x32 pixels, with a projection."""

    def __init__(self):
        super().__init__()
        self.net = models.resnet50()
        self.net.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.net.maxpool, self.net.fc = nn.Identity(), nn.Identity()
        self.projection = nn.Sequential(
            nn.Linear(2048, 512, bias=False), nn.BatchNorm1d(512), nn.ReLU(inplace=True)
        )
        self.projection.append(nn.Linear(512, 128))

    def forward(self, X) -> torch.Tensor:
        return F.normalize(self.projection(self.net(X)), dim=-1)


def views(n) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(n, 3, 32, 32), torch.rand(n, 3, 32, 32)


def contrastive(net, first, second) -> torch.Tensor:
    """Each view beside all others of the batch; the gradients before it are cleared after it."""
    X, Y = net(first), net(second)
    both = torch.cat([X, Y])
    similar = torch.exp(both @ both.T / 0.5)
    others = similar.sum(1) - similar.diagonal()
    pairs = torch.exp((X * Y).sum(-1) / 0.5).repeat(2)
    loss = -torch.log(pairs / others).mean()
    net.zero_grad()
    return loss


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


def momentum(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def one_by_one(parameters) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=False)  # as optimizers were in 2019


def momentum_of_old(parameters) -> MomentumOfOld:
    return MomentumOfOld(parameters, lr=0.1, momentum=0.9, foreach=False)


def one_by_one_of_old(parameters) -> AdamWOfOld:
    return AdamWOfOld(parameters, foreach=False)


def fused(parameters) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, fused=True)


NETWORKS = {  # network, batch, loss, optimizer, devices
    "vit": (vit, images(224, 10), cleared_late, ClearedByTheLoss, 1),
    "vit fsdp": (sharded_vit, images(224, 10), cleared_late, ClearedByTheLoss, 4),
    "mobilenet": (models.mobilenet_v2, images(224), cross_entropy, sgd, 1),
    "vgg": (models.vgg19, images(224), cross_entropy, sgd, 1),
    "tsn": (lambda: models.resnet50(num_classes=400), images(224, 400), cross_entropy, momentum, 8),
    "fcn": (fcn, pixels(480, 21), with_two_heads, momentum, 8),
    "gpt2": (GPT2, tokens(1024), next_token, one_by_one, 1),
    "gpt2 medium": (lambda: GPT2(1024, 16, 24), tokens(1024), next_token, one_by_one, 1),
    "distilbert": (DistilBERT, labelled(512), cleared_late, ClearedByTheLoss, 1),
    "bert": (BERT, labelled(512), cross_entropy, one_by_one_of_old, 1),
    "bert recomputed": (lambda: BERT(True), labelled(512), cross_entropy, one_by_one_of_old, 1),
    "simclr": (SimCLR, views, contrastive, ClearedByTheLoss, 1),
    "nano gpt": (
        lambda: GPT2(words=50304, dropout=0.0, eager=False),
        tokens(1024),
        next_token,
        fused,
        1,
    ),
}
for name, side, classes in (
    ("cityscapes", (512, 1024), 19),
    ("hrf", 256, 2),
    ("stare", 128, 2),
    ("drive", 64, 2),
):
    NETWORKS[f"unet {name}"] = (
        lambda classes=classes: UNet(classes),
        pixels(side, classes),
        of_each_pixel,
        momentum,
        4,
    )

for name, deep, side in (
    ("", True, (512, 1024)),
    (" 769", True, 769),
    ("b", False, (512, 1024)),
):
    for depth, resnet in ((50, models.resnet50), (101, models.resnet101)):
        NETWORKS[f"fcn r{depth}{name}"] = (
            lambda resnet=resnet, deep=deep: FCN(resnet, deep),
            pixels(side, 19),
            of_each_pixel,
            momentum_of_old,
            4,
        )
