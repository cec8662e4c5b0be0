"""Language models of other people whose memory is published: GPT-2, BERT and DistilBERT."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def tokens(length) -> Callable:
    return lambda n: (torch.zeros(n, length, dtype=torch.int64),)


def labelled(length, classes=2) -> Callable:
    """Texts with a label each."""
    return lambda n: (torch.zeros(n, length, dtype=torch.int64), torch.randint(classes, (n,)))


def next_token(net, X) -> torch.Tensor:
    scores = net(X)[:, :-1].contiguous()
    return F.cross_entropy(scores.flatten(0, 1), X[:, 1:].flatten())


class Block(nn.Module):
    """A block of GPT-2: ``eager`` keeps all pairs of tokens, else the attention is fused."""

    def __init__(self, width, heads, dropout, eager):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.eager = eager
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        if eager:
            self.register_buffer("seen", torch.ones(1, 1, 1024, 1024).tril())

    def attention(self, q, k, v) -> torch.Tensor:
        if not self.eager:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        length = q.shape[-2]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        seen = self.seen[:, :, :length, :length]
        scores = scores * seen - 1e4 * (1 - seen)
        return F.dropout(scores.softmax(-1), self.dropout) @ v

    def forward(self, X) -> torch.Tensor:
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

    def forward(self, X) -> torch.Tensor:
        H = F.dropout(self.words(X) + self.places(torch.arange(X.shape[1])), self.dropout)
        for block in self.blocks:
            H = block(H)
        return self.head(self.norm(H))


class Attention(nn.Module):
    """Attention of BERT: all pairs of tokens, a mask, dropout; ``after`` the projection, too."""

    def __init__(self, width, heads, after):
        super().__init__()
        self.heads, self.after = heads, after
        self.qkv = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.projection = nn.Linear(width, width)

    def forward(self, X) -> torch.Tensor:
        q, k, v = (layer(X).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in self.qkv)
        scores = self.masked(q, k, q.shape[-1] ** 0.5)
        weights = F.dropout(scores.softmax(-1), 0.1)
        attended = (weights @ v).transpose(1, 2).contiguous().view(X.shape)
        return F.dropout(self.projection(attended), self.after)

    def masked(self, q, k, scale) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / scale
        return scores + torch.zeros(q.shape[0], 1, 1, q.shape[2])


class MaskedByFilling(Attention):
    """The same in DistilBERT."""

    def masked(self, q, k, scale) -> torch.Tensor:
        scores = (q / scale) @ k.transpose(-2, -1)
        padding = torch.zeros(q.shape[0], 1, 1, q.shape[2], dtype=torch.bool)
        return scores.masked_fill(padding.expand_as(scores), torch.finfo(scores.dtype).min)


class PostNormBlock(nn.Module):
    """A block of BERT: each norm stands after its sum."""

    def __init__(self, attention, width):
        super().__init__()
        self.attention = attention
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, X) -> torch.Tensor:
        X = self.norms[0](self.attention(X) + X)
        H = F.dropout(self.second(F.gelu(self.first(X))), 0.1)
        return self.norms[1](H + X)


class BERT(nn.Module):
    """With a classifier of two classes: the large one, ``recomputed`` block by block if so."""

    def __init__(self, recomputed=False, width=1024, heads=16, layers=24):
        super().__init__()
        self.recomputed = recomputed
        self.embeddings = nn.ModuleList(nn.Embedding(n, width) for n in (30522, 512, 2))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(
            PostNormBlock(Attention(width, heads, after=0.1), width) for _ in range(layers)
        )
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def embedded(self, X) -> torch.Tensor:
        words, places, kinds = self.embeddings
        H = words(X) + kinds(torch.zeros_like(X)) + places(torch.arange(X.shape[1]))
        return F.dropout(self.norm(H), 0.1)

    def forward(self, X) -> torch.Tensor:
        H = self.embedded(X)
        for block in self.blocks:
            H = checkpoint(block, H, use_reentrant=False) if self.recomputed else block(H)
        return self.classifier(F.dropout(torch.tanh(self.pooler(H[:, 0])), 0.1))


class DistilBERT(nn.Module):
    """With a classifier of two classes: half the blocks of BERT base."""

    def __init__(self, width=768, heads=12, layers=6):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(n, width) for n in (30522, 512))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(
            PostNormBlock(MaskedByFilling(width, heads, after=0.0), width) for _ in range(layers)
        )
        self.before, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, X) -> torch.Tensor:
        words, places = self.embeddings
        H = F.dropout(self.norm(words(X) + places(torch.arange(X.shape[1]))), 0.1)
        for block in self.blocks:
            H = block(H)
        return self.classifier(F.dropout(F.relu(self.before(H[:, 0])), 0.2))
