"""Networks and steps of other people whose memory is published, see published_memory.csv.

Written after their descriptions, as far as memory is concerned: widths, depths, dropout, norms, the
loss.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from d2lmgpu.backend import _let_torchvision_import

_let_torchvision_import()

from torchvision import models  # noqa: E402


def images(side, classes=1000):
    sides = side if isinstance(side, tuple) else (side, side)
    return lambda n: (torch.rand(n, 3, *sides), torch.randint(classes, (n,)))


def pixels(side, classes):
    """Images whose labels are one a pixel."""
    sides = side if isinstance(side, tuple) else (side, side)
    return lambda n: (torch.rand(n, 3, *sides), torch.randint(classes, (n, *sides)))


def tokens(length):
    return lambda n: (torch.zeros(n, length, dtype=torch.int64),)


def cross_entropy(net, X, y):
    return F.cross_entropy(net(X), y)


def cleared_late(net, X, y):
    """The gradients of the step before are there until the loss is known."""
    loss = cross_entropy(net, X, y)
    net.zero_grad()
    return loss


class ClearedByTheLoss(torch.optim.Adam):
    def zero_grad(self, set_to_none=True):
        pass


def vit():
    net = models.vit_l_16()
    net.heads.head = nn.Linear(1024, 10)
    return net


def with_two_heads(net, X, y):
    outputs = net(X)
    return F.cross_entropy(outputs["out"], y) + 0.5 * F.cross_entropy(outputs["aux"], y)


def fcn():
    return models.segmentation.fcn_resnet50(weights_backbone=None, aux_loss=True, num_classes=21)


def convolution(inputs, outputs, kernel=3):
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def two_convolutions(inputs, outputs):
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

    def forward(self, X):
        kept, nodes = [], {}
        for layer in self.down:
            X = layer(X)
            kept.append(X)
        for i in (3, 2, 1, 0):
            nodes[i] = X = self.join[i](torch.cat([kept[i], self.up[i](X)], 1))
        return self.heads[0](nodes[0]), self.heads[1](nodes[1])


def of_each_pixel(net, X, y):
    total = 0
    for weight, scores in zip((1, 0.4), net(X)):
        scores = F.interpolate(scores, size=y.shape[1:], mode="bilinear")
        total = total + weight * F.cross_entropy(scores, y, reduction="none").mean()
    return total


class Block(nn.Module):
    """A block of GPT-2: ``eager`` keeps all pairs of tokens, else the attention is fused."""

    def __init__(self, width, heads, dropout, eager):
        super().__init__()
        self.heads, self.dropout, self.eager = heads, dropout, eager
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        if eager:
            self.register_buffer("seen", torch.ones(1, 1, 1024, 1024).tril())

    def attention(self, q, k, v):
        if not self.eager:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        length = q.shape[-2]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        seen = self.seen[:, :, :length, :length]
        scores = scores * seen - 1e4 * (1 - seen)
        return F.dropout(scores.softmax(-1), self.dropout) @ v

    def forward(self, X):
        batch, length, width = X.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](X)).split(width, 2)
        )
        attended = self.attention(q, k, v).transpose(1, 2).contiguous().view(X.shape)
        X = X + F.dropout(self.projection(attended), self.dropout)
        H = self.first(self.norms[1](X))
        H = 0.5 * H * (1 + torch.tanh(0.8 * (H + 0.044715 * torch.pow(H, 3.0))))
        return X + F.dropout(self.second(H), self.dropout)


class GPT2(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, words=50257, dropout=0.1, eager=True):
        super().__init__()
        self.dropout = dropout
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, eager) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, X):
        H = F.dropout(self.words(X) + self.places(torch.arange(X.shape[1])), self.dropout)
        for block in self.blocks:
            H = block(H)
        return self.head(self.norm(H))


def next_token(net, X):
    scores = net(X)[:, :-1].contiguous()
    return F.cross_entropy(scores.flatten(0, 1), X[:, 1:].flatten())


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def one_by_one(parameters):
    return torch.optim.AdamW(parameters, foreach=False)  # as optimizers were in 2019


def fused(parameters):
    return torch.optim.AdamW(parameters, fused=True)


NETWORKS = {  # network, batch, loss, optimizer, devices
    "vit": (vit, images(224, 10), cleared_late, ClearedByTheLoss, 1),
    "mobilenet": (models.mobilenet_v2, images(224), cross_entropy, sgd, 1),
    "vgg": (models.vgg19, images(224), cross_entropy, sgd, 1),
    "tsn": (lambda: models.resnet50(num_classes=400), images(224, 400), cross_entropy, momentum, 8),
    "fcn": (fcn, pixels(480, 21), with_two_heads, momentum, 8),
    "gpt2": (GPT2, tokens(1024), next_token, one_by_one, 1),
    "gpt2 medium": (lambda: GPT2(1024, 16, 24), tokens(1024), next_token, one_by_one, 1),
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
