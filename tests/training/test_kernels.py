"""The kernels of in-page training against NumPy in float64, in the browser that runs them."""

import base64
import gzip
import re
import shutil
import subprocess

import numpy as np
import numpy_networks as networks
import pytest
from in_page import TRAINING

N = 13  # not a multiple of what goes through a network at once
CODE = ["training.js", "device.js", "code.js"]
needs_clang = pytest.mark.skipif(
    not all(map(shutil.which, ("clang-14", "wasm-ld-14", "wasm2js"))),
    reason="clang 14, lld or binaryen is not there: apt-get install clang lld binaryen",
)


def parameters(network, seed=0):
    """He's start in float32, with biases that are not zero."""
    rng = np.random.default_rng(seed)
    parts = []
    for shape in networks.SHAPES[network]:
        parts.append(rng.normal(0, np.sqrt(2 / networks.fan_in(shape)), np.prod(shape)))
        parts.append(rng.normal(0, 0.1, shape[-1]))
    return np.concatenate(parts).astype(np.float32)


def pieces(kernels, network, vector, first, n):
    kernels.start(len(networks.SHAPES[network]), 0)
    kernels.write(kernels.place_of_parameters(), vector)
    kernels.piece(first, n, 1)
    return kernels.floats(kernels.place_of_gradient(1), len(vector) + 2)


@pytest.mark.parametrize("network", networks.SHAPES)
def test_gradients_are_those_of_float64(kernels, images, network):
    vector = parameters(network)
    computed = pieces(kernels, network, vector, 0, N)
    X, y = images[0][:N], images[1][:N]
    exact, loss, right = networks.gradient(network, vector.astype(float), X, y)
    tensors = zip(networks.layers(network, computed[:-2]), networks.layers(network, exact))
    for mine, other in ((m, o) for pair in tensors for m, o in zip(*pair)):
        assert np.abs(mine - other).max() <= 1e-6 * np.abs(other).max()
    assert computed[-2] == pytest.approx(loss, rel=1e-6) and computed[-1] == right


@pytest.mark.parametrize("network", networks.SHAPES)
def test_simd_and_plain_give_the_same_bits(builds, network):
    vector = parameters(network)
    simd, plain = (pieces(kernels, network, vector, 40, N) for kernels in builds.values())
    assert simd.tobytes() == plain.tobytes()


@pytest.mark.parametrize("network", networks.SHAPES)
def test_the_start_is_he_s(kernels, network):
    size = kernels.start(len(networks.SHAPES[network]), 7)
    vector = kernels.floats(kernels.place_of_parameters(), size)
    for (W, b), shape in zip(networks.layers(network, vector), networks.SHAPES[network]):
        deviation = np.sqrt(2 / networks.fan_in(shape))
        assert W.std() == pytest.approx(deviation, rel=0.15 if W.size < 1000 else 0.03)
        assert abs(W.mean()) < 4 * deviation / np.sqrt(W.size) and not b.any()
    assert len(set(vector)) > 0.9 * len(vector)
    kernels.start(len(networks.SHAPES[network]), 8)
    assert (kernels.floats(kernels.place_of_parameters(), size) != vector).sum() > 0.9 * size


def test_an_epoch_takes_every_image_once_in_an_order_of_its_own(builds):
    kernels = builds["simd"]
    kernels.start(2, 0)

    def right(first, n):
        kernels.piece(first, n, 0)
        return kernels.floats(kernels.place_of_gradient(0) + 4 * 101_770, 2)[1]

    whole, some = right(0, 6000), {right(0, 600)}
    for epoch in range(3):
        kernels.shuffle(0, epoch)
        assert right(0, 6000) == whole
        some.add(right(0, 600))
    assert len(some) > 2


def test_the_test_images_are_those_behind_the_training_images(kernels, images):
    vector = parameters("mlp")
    kernels.start(2, 0)
    kernels.write(kernels.place_of_parameters(), vector)
    kernels.shuffle(3, 1)  # of the training images
    X, y = images[0][6500:6625], images[1][6500:6625]
    scores, _ = networks.forward("mlp", vector.astype(float), X)
    assert kernels.known(500, 125) == (scores.argmax(axis=1) == y).sum()


def test_an_update_goes_down_the_gradient(kernels):
    size = kernels.start(2, 0)
    before = kernels.floats(kernels.place_of_parameters(), size)
    gradient = np.linspace(-1, 1, size).astype(np.float32)
    kernels.write(kernels.place_of_gradient(0), gradient)
    kernels.update(0.5)
    after = kernels.floats(kernels.place_of_parameters(), size)
    assert np.array_equal(after, before - np.float32(0.5) * gradient)


@pytest.mark.parametrize("network", networks.SHAPES)
def test_what_is_no_number_reaches_the_loss(kernels, network):
    """A run that has gone astray must not look like one that learns nothing."""
    vector = parameters(network)
    vector[0] = np.nan  # of the first layer, before every relu
    assert np.isnan(pieces(kernels, network, vector, 0, N)[-2])


@needs_clang
def test_the_code_is_what_its_sources_give(tmp_path):
    subprocess.run([TRAINING / "build.sh", tmp_path / "code.js"], check=True)
    assert (tmp_path / "code.js").read_text() == (TRAINING / "code.js").read_text()


def test_the_code_holds_a_module():
    text = re.search(r'simd: "([^"]+)"', (TRAINING / "code.js").read_text())[1]
    assert base64.b64decode(text).startswith(b"\0asm")


def test_the_code_is_small():
    code = b"".join((TRAINING / name).read_bytes() for name in CODE)
    assert len(code) <= 60_000
    assert sum(len(gzip.compress((TRAINING / name).read_bytes())) for name in CODE) <= 25_000
