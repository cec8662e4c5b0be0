"""The page's networks once more, in NumPy and float64: what its kernels have to agree with.

Parameters are one vector: of every layer the weights, inputs by outputs, then the biases. The
inputs of a filter are ordered line, column, channel; so are those of LeNet's first dense layer.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SHAPES = {
    "lenet": [(3, 3, 1, 20), (5, 5, 20, 50), (800, 128), (128, 10)],
    "mlp": [(784, 128), (128, 10)],
    "softmax": [(784, 10)],
}


def fan_in(shape):
    return int(np.prod(shape[:-1]))


def layers(network, vector):
    """``[(W, b), ...]``: views of the vector."""
    pairs, at = [], 0
    for shape in SHAPES[network]:
        n, out = int(np.prod(shape)), shape[-1]
        pairs.append((vector[at : at + n].reshape(shape), vector[at + n : at + n + out]))
        at += n + out
    assert at == len(vector)
    return pairs


def convolve(X, W, b):
    """X (n, h, w, c): without padding."""
    view = sliding_window_view(X, W.shape[:2], axis=(1, 2))  # (n, y, x, c, i, j)
    return np.einsum("nyxcij,ijco->nyxo", view, W, optimize=True) + b


def convolve_back(X, W, dY):
    """The gradients of X, W and b."""
    view = sliding_window_view(X, W.shape[:2], axis=(1, 2))
    dX = np.zeros_like(X)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            dX[:, i : i + dY.shape[1], j : j + dY.shape[2]] += dY @ W[i, j].T
    dW = np.einsum("nyxcij,nyxo->ijco", view, dY, optimize=True)
    return dX, dW, dY.sum(axis=(0, 1, 2))


def pool(X):
    n, h, w, c = X.shape
    even = X[:, : h // 2 * 2, : w // 2 * 2]  # an odd last line and column are dropped
    return even.reshape(n, h // 2, 2, w // 2, 2, c).mean(axis=(2, 4))


def pool_back(X, dY):
    dX = np.zeros_like(X)
    spread = dY.repeat(2, axis=1).repeat(2, axis=2) / 4
    dX[:, : spread.shape[1], : spread.shape[2]] = spread
    return dX


def forward(network, vector, X):
    """The scores, and what came before each layer."""
    pairs = layers(network, vector)
    kept, H = [], X.reshape(-1, 28, 28, 1)
    for W, b in pairs:
        convolves = W.ndim == 4
        H = H if convolves else H.reshape(len(X), -1)
        Z = convolve(H, W, b) if convolves else H @ W + b
        kept.append((H, Z))
        H = pool(np.maximum(Z, 0)) if convolves else np.maximum(Z, 0)
    return Z, kept


def gradient(network, vector, X, y):
    """The gradient of the summed cross-entropy, the summed loss, the number of right answers."""
    scores, kept = forward(network, vector, X)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss, right = -np.log(shares[rows, y]).sum(), (scores.argmax(axis=1) == y).sum()
    dZ = shares.copy()
    dZ[rows, y] -= 1
    gradients = []
    for (W, _), (H, Z) in list(zip(layers(network, vector), kept))[::-1]:
        if Z is not scores:
            if W.ndim == 4:
                dZ = pool_back(Z, dZ.reshape(len(X), Z.shape[1] // 2, Z.shape[2] // 2, -1))
            dZ = dZ * (Z > 0)
        if W.ndim == 4:
            dH, dW, db = convolve_back(H, W, dZ)
        else:
            dH, dW, db = dZ @ W.T, H.T @ dZ, dZ.sum(axis=0)
        gradients += [db, dW.ravel()]
        dZ = dH
    return np.concatenate(gradients[::-1]), loss, right
