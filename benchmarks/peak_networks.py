"""Networks whose peak ``benchmarks.peak_sums`` counts: language models of any size, three others.

Written after the papers and PyTorch's own layers, as far as memory is concerned; attention is
fused.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from d2lmgpu.backend import _let_torchvision_import

_let_torchvision_import()

from torchvision import models  # noqa: E402


@dataclass(frozen=True)
class Config:
    """The numbers of a language model, by the names that ``config.json`` files give them."""

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    intermediate_size: int
    vocab_size: int
    sequence_length: int


class Block(nn.Module):
    """A block in the manner of GPT-2 (norms first), BERT (norms last) or Llama (gated, rotated)."""

    def __init__(self, config, kind):
        super().__init__()
        self.kind, llama = kind, kind == "Llama"
        width, inner = config.hidden_size, config.intermediate_size
        self.head_width = width // config.num_heads
        kv_width = self.head_width * config.num_kv_heads
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        self.q, self.out = (nn.Linear(width, width, bias=not llama) for _ in range(2))
        self.k, self.v = (nn.Linear(width, kv_width, bias=not llama) for _ in range(2))
        self.up = nn.Linear(width, inner, bias=not llama)
        self.down = nn.Linear(inner, width, bias=not llama)
        self.gate = nn.Linear(width, inner, bias=False) if llama else None
        self.dropout = nn.Dropout(0.0 if llama else 0.1)

    def attention(self, X, angles) -> torch.Tensor:
        batch, length, _ = X.shape
        q, k, v = (
            layer(X).view(batch, length, -1, self.head_width).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        if angles:
            q, k = rotated(q, *angles), rotated(k, *angles)
        few = k.shape[1] < q.shape[1]
        attended = F.scaled_dot_product_attention(
            q, k, v, is_causal=self.kind != "BERT", enable_gqa=few
        )
        return self.dropout(self.out(attended.transpose(1, 2).reshape(X.shape)))

    def dense(self, X) -> torch.Tensor:
        hidden = F.silu(self.gate(X)) * self.up(X) if self.gate else F.gelu(self.up(X))
        return self.dropout(self.down(hidden))

    def forward(self, X, angles) -> torch.Tensor:
        first, second = self.norms
        if self.kind == "BERT":
            X = first(X + self.attention(X, angles))
            return second(X + self.dense(X))
        X = X + self.attention(first(X), angles)
        return X + self.dense(second(X))


def rotated(X, cos, sin) -> torch.Tensor:
    """Pairs of numbers turned by angles that grow with the token's place."""
    first, second = X.chunk(2, -1)
    return X * cos + torch.cat([-second, first], -1) * sin


class LanguageModel(nn.Module):
    def __init__(self, config, kind):
        super().__init__()
        width, words = config.hidden_size, config.vocab_size
        self.kind, self.head_width = kind, width // config.num_heads
        llama = kind == "Llama"
        self.words = nn.Embedding(words, width)
        self.places = None if llama else nn.Embedding(config.sequence_length, width)
        self.blocks = nn.ModuleList(Block(config, kind) for _ in range(config.num_layers))
        self.norm = nn.RMSNorm(width) if llama else nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.0 if llama else 0.1)
        self.head = nn.Linear(width, words, bias=kind == "BERT")
        if not llama:
            self.head.weight = self.words.weight
        if kind == "BERT":  # its head has a dense layer and a norm of its own
            self.transform, self.last_norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, X) -> torch.Tensor:
        H, angles = self.words(X), None
        if self.kind == "Llama":
            places = torch.rand(X.shape[1], self.head_width)
            angles = places.cos(), places.sin()
        else:
            H = H + self.places(torch.arange(X.shape[1]))
            H = self.dropout(self.norm(H) if self.kind == "BERT" else H)
        for block in self.blocks:
            H = block(H, angles)
        if self.kind == "BERT":
            return self.head(self.last_norm(F.gelu(self.transform(H))))
        return self.head(self.norm(H))


def tokens(config) -> Callable:
    shape = config.sequence_length
    return lambda n: tuple(torch.zeros(n, shape, dtype=torch.int64) for _ in range(2))


def of_each_token(net, X, y) -> torch.Tensor:
    return F.cross_entropy(net(X).flatten(0, 1), y.flatten())


def images(side) -> Callable:
    return lambda n: (torch.rand(n, 3, side, side), torch.zeros(n, dtype=torch.int64))


def pixels(side) -> Callable:
    return lambda n: (torch.rand(n, 3, side, side), torch.zeros(n, side, side, dtype=torch.int64))


def cross_entropy(net, X, y) -> torch.Tensor:
    return F.cross_entropy(net(X), y)


def two_convolutions(inputs, outputs) -> nn.Sequential:
    layers = []
    for channels in (inputs, outputs):
        layers += [
            nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015, arXiv 1505.04597), padded and with batch norm."""

    def __init__(self, widths=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        pairs = [*zip((3, *widths), widths)]
        self.down = nn.ModuleList(two_convolutions(*pair) for pair in pairs)
        back = pairs[:0:-1]
        self.larger = nn.ModuleList(nn.ConvTranspose2d(wide, low, 2, 2) for low, wide in back)
        self.up = nn.ModuleList(two_convolutions(wide, low) for low, wide in back)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, X) -> torch.Tensor:
        kept = []
        for i, layers in enumerate(self.down):
            X = layers(F.max_pool2d(X, 2) if i else X)
            kept.append(X)
        kept.pop()
        for larger, layers in zip(self.larger, self.up):
            X = layers(torch.cat([kept.pop(), larger(X)], 1))
        return self.head(X)


def units(net) -> list:
    """What FSDP gathers at a time: blocks, as its documentation advises."""
    if isinstance(net, LanguageModel):
        return net.blocks
    if isinstance(net, UNet):
        return [*net.down, *net.up]
    kinds = (models.resnet.Bottleneck, models.vision_transformer.EncoderBlock)
    return [module for module in net.modules() if isinstance(module, kinds)]


OTHERS = {  # name -> (network, batch, loss), of a size that is fixed
    "ViT-B/16": (models.vit_b_16, images(224), cross_entropy),
    "ResNet-50": (models.resnet50, images(224), cross_entropy),
    "U-Net": (UNet, pixels(512), cross_entropy),
}
KINDS = ("GPT-2", "BERT", "Llama")
