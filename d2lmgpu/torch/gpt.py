"""A small GPT, to be taken apart and split: the network of *Beyond Data Parallelism*.

Not among the names of ``d2lmgpu.torch``: MXNet has no counterpart of what is done with it.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal attention of several heads: each token looks at itself and those before it.

    It maps (batch, tokens, width) to the same shape. How many heads there are is read from the
    output of ``q``, so that a device may hold some of them. Defined in chapters/beyond/gpt.

    Parameters
    ----------
    width : int
        Numbers a token, a part of them for each head.
    heads : int
        A divisor of ``width``.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.head_width = width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, X) -> torch.Tensor:
        """What each token takes from itself and those before it, (n, tokens, width)."""
        q, k, v = (
            linear(X).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(heads.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Two dense layers, four times as wide between them. Defined in chapters/beyond/gpt.

    Parameters
    ----------
    width : int
        Numbers a token, in and out.
    """

    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, X) -> torch.Tensor:
        """Two dense layers with a GELU between them, for each token by itself."""
        return self.down(F.gelu(self.up(X)))


class Block(nn.Module):
    """Attention and an MLP, each after a norm and beside the identity.

    Defined in chapters/beyond/gpt.

    Parameters
    ----------
    width : int
        Numbers a token, in and out.
    heads : int
        A divisor of ``width``.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), MLP(width)

    def forward(self, X) -> torch.Tensor:
        """Attention, then the dense layers, each added to what comes in."""
        X = X + self.attn(self.norm1(X))
        return X + self.mlp(self.norm2(X))


class GPT(nn.Module):
    """Maps symbols, (batch, tokens) of whole numbers, to the scores of what comes next.

    The scores are (batch, tokens, symbols). Defined in chapters/beyond/gpt.

    Parameters
    ----------
    symbols : int
        How many there are.
    tokens : int
        The most that a sequence has.
    width : int
        Numbers a token between the blocks.
    blocks : int
    heads : int
        Of each block's attention: a divisor of ``width``.

    References
    ----------
    Radford et al. (2019). Language Models are Unsupervised Multitask Learners. OpenAI.
    """

    def __init__(self, symbols, tokens, width=64, blocks=2, heads=4):
        super().__init__()
        self.emb, self.pos = nn.Embedding(symbols, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, X) -> torch.Tensor:
        """Scores of what comes next at each place, (n, tokens, symbols)."""
        positions = torch.arange(X.shape[1], device=X.device)
        return self.head(self.norm(self.blocks(self.emb(X) + self.pos(positions))))


def saved_bytes(net, loss_of, X, y) -> int:
    """Bytes that autograd keeps for the backward pass, without the parameters, each storage once.

    Defined in chapters/beyond/gpt.

    Parameters
    ----------
    net : Module
    loss_of : callable
        ``loss_of(net, X, y)`` is the forward pass, with the loss.
    X, y : Tensor
        What it gets.

    Returns
    -------
    int
        Bytes.
    """
    known = {p.untyped_storage().data_ptr() for p in net.parameters()}
    storages = {}

    def keep(t):
        storage = t.untyped_storage()
        if storage.data_ptr() not in known:
            storages[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        loss_of(net, X, y)
    return sum(storages.values())
