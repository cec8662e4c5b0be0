"""A step's peak, found on fake tensors, against PyTorch's own account of it on real ones."""

from functools import partial

import pytest
import torch
from cpu_profile import measured
from soaking import sample
from torch import nn
from torch.nn import functional as F

from d2lmgpu.backend import _let_torchvision_import
from d2lmgpu.torch.memory import fits

_let_torchvision_import()

from torchvision import models  # noqa: E402

OPTIMIZERS = {
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.01, momentum=0.9),
    "Adam": lambda ps: torch.optim.Adam(ps),
    "AdamW, fused": lambda ps: torch.optim.AdamW(ps, fused=True),
    "AdamW, one by one": lambda ps: torch.optim.AdamW(ps, foreach=False),
    "Adagrad": lambda ps: torch.optim.Adagrad(ps),
}
NETWORKS = [  # side of the image, batch, optimizer, precision
    ("resnet18", 64, 16, "momentum", "float32"),
    ("resnet18", 32, 16, "Adam", "float32"),  # a pixel in the last layers: images of CIFAR
    ("mobilenet_v3_small", 64, 16, "AdamW, one by one", "amp bfloat16"),
    ("shufflenet_v2_x1_0", 64, 16, "Adagrad", "float32"),
    ("regnet_y_400mf", 64, 16, "momentum", "float32"),  # its layers depend on numbers in tensors
    ("resnet18", 64, 16, "momentum", "amp bfloat16"),
    ("alexnet", 64, 16, "Adam", "amp bfloat16"),  # has dropout
    ("swin_t", 32, 8, "Adam", "float32"),
    ("resnet50", 64, 4, "Adam", "float32"),  # 2 x 2 pixels in the last layers
    ("vgg11", 32, 2, "AdamW, fused", "float32"),
]


def images(side):
    return lambda n: (torch.rand(n, 3, side, side), torch.zeros(n, dtype=torch.int64))


def cross_entropy(net, X, y):
    return F.cross_entropy(net(X), y)


@pytest.mark.parametrize(
    ("name", "side", "batch_size", "optimizer", "precision"), sample(4, NETWORKS)
)
def test_networks_of_others(name, side, batch_size, optimizer, precision):
    make, batch = getattr(models, name), images(side)
    given = make, batch, cross_entropy, OPTIMIZERS[optimizer], batch_size, precision
    fit = fits(*given)
    assert fit.peak == pytest.approx(measured(*given), rel=0.06)
    assert sum(fit.parts.values()) == fit.peak <= fit.allocated <= fit.least <= fit.reserved
    net = make()
    held = [*net.parameters(), *net.buffers()]
    assert fit.parts["parameters"] == sum(t.numel() * t.element_size() for t in held)
    assert fit.looked == 0


def squares(net, X):
    return net(X).square().sum()


def test_adam_takes_all_parameters_at_once_as_on_a_gpu():
    def dense():
        return nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(8)])

    P, given = 8 * 512 * 512 * 4, (dense, lambda n: (torch.rand(n, 512),), squares)
    peaks = [
        fits(*given, optimizer, 1).peak
        for optimizer in (OPTIMIZERS["Adam"], OPTIMIZERS["AdamW, one by one"])
    ]
    # Parameters, gradients, two averages; then the roots of all, or of one of eight layers its
    # root, that divided, and the layer's before it.
    assert peaks == [pytest.approx(5 * P, rel=0.01), pytest.approx((4 + 3 / 8) * P, rel=0.01)]


def test_dropout_keeps_a_byte_a_number_as_on_a_gpu():
    def kept(*more):
        given = lambda: nn.Sequential(nn.Linear(8, 64), *more), lambda n: (torch.rand(n, 8),)
        return fits(*given, squares, OPTIMIZERS["momentum"], 4096).parts["activations"]

    N = 4096 * 64
    assert kept(nn.Dropout(0.5)) - kept() == N
    assert kept(nn.Dropout(0.0)) == kept(nn.Dropout(0.5).eval()) == kept()


def test_autocast_of_a_gpu_takes_a_softmax_in_float32():
    class Softmax(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 64)

        def forward(self, X):
            return self.layer(X).softmax(-1)

    given = Softmax, lambda n: (torch.rand(n, 8),), lambda net, X: net(X).sum()
    fit = fits(*given, OPTIMIZERS["momentum"], 4096, "amp bfloat16")
    assert fit.parts["activations"] == pytest.approx(4 * 4096 * 64 + 2 * 4096 * 8, rel=0.02)


class BlockwiseAdam(torch.optim.Optimizer):
    """Adam with two averages of 8 bits, each block of 2048 divided by its largest number.

    As Dettmers et al. (2022, arXiv 2110.02861) keep them, but for the mapping of the 256 values,
    which takes no memory. ``elsewhere``: they are in an attribute, not in ``state``.
    """

    BLOCK = 2048

    def __init__(self, parameters, elsewhere=False):
        super().__init__(parameters, {"lr": 1e-3})
        self.averages = {} if elsewhere else self.state

    def of_8_bits(self, values):
        blocks = F.pad(values.flatten(), (0, -values.numel() % self.BLOCK)).view(-1, self.BLOCK)
        largest = blocks.abs().amax(1, keepdim=True).clamp(min=1e-12)
        return (blocks / largest * 127).to(torch.int8), largest

    @staticmethod
    def of_32_bits(codes, largest, like):
        return (codes * (largest / 127)).flatten()[: like.numel()].view_as(like)

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            if p not in self.averages:
                zeros = self.of_8_bits(torch.zeros_like(p))
                self.averages[p] = {"mean": zeros, "square": self.of_8_bits(torch.zeros_like(p))}
            mine = self.averages[p]
            mean = self.of_32_bits(*mine["mean"], p).lerp_(p.grad, 0.1)
            square = self.of_32_bits(*mine["square"], p).lerp_(p.grad.square(), 0.001)
            p.addcdiv_(mean, square.sqrt_().add_(1e-8), value=-1e-3)
            for name, average in {"mean": mean, "square": square}.items():
                for kept, new in zip(mine[name], self.of_8_bits(average)):
                    kept.copy_(new)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_state_of_any_optimizer_is_what_its_step_leaves(elsewhere):
    """Two bytes a parameter, and for each block of each average four."""

    def dense():
        return nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(8)])

    P, given = 8 * 512 * 512, (dense, lambda n: (torch.rand(n, 512),), squares)
    optimizer = partial(BlockwiseAdam, elsewhere=elsewhere)
    fit = fits(*given, optimizer, 4)
    state = 2 * P + 2 * 4 * P // BlockwiseAdam.BLOCK
    last = state // 16  # of 8 layers' 16 averages: at the peak, in the first step, not yet there
    assert fit.parts["optimizer state"] == pytest.approx(state - last, rel=0.001)
    assert fit.parts["parameters"] == fit.parts["gradients"] == 4 * P
    assert fit.peak == pytest.approx(measured(*given, optimizer, 4, "float32"), rel=0.02)
    assert fit.peak < 0.8 * fits(*given, OPTIMIZERS["Adam"], 4).peak


STATES = {  # what PyTorch's optimizers remember, in multiples of the parameters
    "Adadelta": 2,
    "Adafactor": 0,
    "Adagrad": 1,
    "Adam": 2,
    "AdamW": 2,
    "Adamax": 2,
    "ASGD": 1,
    "Muon": 1,
    "NAdam": 2,
    "RAdam": 2,
    "RMSprop": 1,
    "Rprop": 2,
    "SGD": 0,
}


@pytest.mark.parametrize("name", STATES)
def test_pytorchs_optimizers(name):
    def dense():
        return nn.Sequential(*[nn.Linear(256, 256, bias=False) for _ in range(2)])

    given = dense, lambda n: (torch.rand(n, 256),), squares
    kind = getattr(torch.optim, name)
    parts = fits(*given, lambda parameters: kind(parameters, lr=0.1), 4).parts
    assert parts["optimizer state"] == pytest.approx(
        STATES[name] * parts["parameters"], abs=0.02 * parts["parameters"]
    )


def test_an_optimizer_that_computes_the_loss_again_is_refused():
    given = lambda: nn.Linear(8, 8), lambda n: (torch.rand(n, 8),), squares
    with pytest.raises(ValueError, match=r"^optimizer is a LBFGS: give one whose step needs"):
        fits(*given, torch.optim.LBFGS, 4)


class Language(nn.Module):
    """Tokens to logits; the head is the embedding, the attention PyTorch's own."""

    def __init__(self, width=64, vocabulary=5000):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.block = nn.TransformerEncoderLayer(width, 4, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, X):
        return self.head(self.block(self.embed(X)))


def tokens(n):
    return (torch.zeros(n, 128, dtype=torch.int64),)


def next_token(net, X):
    return F.cross_entropy(net(X)[:, :-1].flatten(0, 1), X[:, 1:].flatten())


def test_a_tied_head_counts_once_and_the_logits_with_all_that_the_loss_makes():
    given = Language, tokens, next_token, OPTIMIZERS["Adam"], 8, "float32"
    fit = fits(*given)
    assert fit.peak == pytest.approx(measured(*given), rel=0.06)
    parameters = sum(p.numel() for p in Language().parameters())
    assert fit.parts["parameters"] == 4 * parameters
    logits = 4 * 8 * 128 * 5000
    assert fit.peak > 3 * logits


def test_frozen_layers_have_no_gradients_and_no_state():
    def frozen():
        net = models.resnet18()
        net.requires_grad_(False)
        net.fc.requires_grad_(True)
        return net

    given = images(64), cross_entropy, OPTIMIZERS["Adam"], 4
    whole, part = fits(models.resnet18, *given), fits(frozen, *given)
    head = 4 * (512 * 1000 + 1000)
    assert part.parts["optimizer state"] < 2 * head + 100 < whole.parts["optimizer state"]
    assert part.peak < whole.peak / 2


def test_what_is_computed_again_is_as_on_a_gpu_too():
    """PyTorch refuses to go on where a tensor comes out otherwise the second time."""

    class Layer(nn.Sequential):
        def forward(self, X):
            again = super().forward
            return torch.utils.checkpoint.checkpoint(again, X, use_reentrant=False)

    def kept(kind, precision):
        def net():
            return kind(nn.Linear(64, 256), nn.Softmax(-1), nn.Dropout(0.1), nn.Linear(256, 64))

        given = net, lambda n: (torch.rand(n, 64),), squares, OPTIMIZERS["momentum"], 64
        return fits(*given, precision).parts["activations"]

    for precision in ("float32", "amp float16"):
        assert kept(Layer, precision) < kept(nn.Sequential, precision)


def test_recomputation_keeps_less():
    class Deep(nn.Module):
        def __init__(self, again):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(8)
            )
            self.again = again

        def forward(self, X):
            for layer in self.layers:
                call = torch.utils.checkpoint.checkpoint
                X = call(layer, X, use_reentrant=False) if self.again else layer(X)
            return X

    def batch(n):
        return torch.rand(n, 64), torch.zeros(n, dtype=torch.int64)

    plain, again = (
        fits(lambda again=again: Deep(again), batch, cross_entropy, OPTIMIZERS["momentum"], 4096)
        for again in (False, True)
    )
    assert again.peak < plain.peak / 2


def test_sixteen_bits_take_half():
    given = models.resnet18, images(64), cross_entropy, OPTIMIZERS["Adam"], 4
    whole, half = fits(*given), fits(*given, "bfloat16")
    for part in ("parameters", "gradients", "optimizer state"):
        assert half.parts[part] == pytest.approx(whole.parts[part] / 2, rel=0.01)


def test_a_network_that_no_machine_holds_is_told():
    def huge():
        return nn.Sequential(*[nn.Linear(100_000, 100_000, bias=False) for _ in range(10)])

    def batch(n):
        return torch.rand(n, 100_000), torch.zeros(n, dtype=torch.int64)

    fit = fits(huge, batch, cross_entropy, OPTIMIZERS["AdamW, fused"], 1)
    assert fit.peak == pytest.approx(4 * 4e11, rel=0.01)  # 4 numbers of 4 bytes, 1e11 parameters


def test_a_step_that_looks_at_numbers_says_so():
    def loss(net, X, y):
        value = cross_entropy(net, X, y)
        return value * value.item()

    fit = fits(models.resnet18, images(32), loss, OPTIMIZERS["momentum"], 2)
    assert fit.looked == 2 and "answered" in str(fit)


BAD = {
    "net": {"net": models.resnet18()},
    "batch": {"batch": torch.rand(2, 3)},
    "loss": {"loss": lambda net, X, y: net(X)},
    "optimizer": {"optimizer": "Adam"},
    "batch_size": {"batch_size": 0},
    "precision": {"precision": "fp8"},
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_asked_is_named(what):
    given = {
        "net": models.resnet18,
        "batch": images(32),
        "loss": cross_entropy,
        "optimizer": OPTIMIZERS["Adam"],
        "batch_size": 2,
    }
    with pytest.raises(ValueError, match=f"^{what} is .*: give"):
        fits(**given | BAD[what])


def test_nothing_is_left_behind():
    fits(models.resnet18, images(32), cross_entropy, OPTIMIZERS["Adam"], 2, "bfloat16")
    assert torch.get_default_dtype() is torch.float32
    assert type(torch.rand(1)) is torch.Tensor
    trained = nn.Linear(2, 2)
    assert not torch.optim.Adam(trained.parameters()).param_groups[0]["foreach"]
