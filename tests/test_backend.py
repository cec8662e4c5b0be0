"""What is handed on from d2l and what is not, and the scaling of images."""

import sys
import types

import numpy as np
import pytest

from d2lmgpu.backend import hand_on
from d2lmgpu.backend.arguments import ArgumentError, Rules
from d2lmgpu.backend.refusals import VERSION
from d2lmgpu.data.loader import resize_images

OURS = ["devices", "train_batch"]


@pytest.fixture
def d2l(monkeypatch):
    """A stand-in for ``d2l.mxnet``; the real one takes seconds to import."""
    package, module = types.ModuleType("d2l"), types.ModuleType("d2l.mxnet")
    package.__version__ = VERSION
    module.corr2d = module.train_ch6 = module.load_array = lambda X, K: X
    monkeypatch.setitem(sys.modules, "d2l", package)
    monkeypatch.setitem(sys.modules, "d2l.mxnet", module)
    return module


def test_pure_helpers_are_handed_on(d2l):
    assert hand_on("corr2d", "d2l.mxnet", OURS) is d2l.corr2d


@pytest.mark.parametrize(
    "name, why",
    [
        ("train_ch6", "trains"),
        ("Trainer", "trains"),
        ("hpo_objective_lenet", "trains"),
        ("update_D", "trains"),
        ("evaluate_loss", "evaluates"),
        ("download", "fetches"),
        ("MTFraEng", "data"),
        ("TimeMachine", "data"),
        ("TokenEmbedding", "data"),
        ("FashionMNIST", "data"),
        ("predict_snli", "picks devices"),
        ("d2l", "all of d2l"),
    ],
)
def test_what_trains_loads_or_picks_devices_is_not(d2l, name, why):
    with pytest.raises(AttributeError, match="Ours are: devices, train_batch") as refused:
        hand_on(name, "d2l.mxnet", OURS)
    assert repr(name) in str(refused.value) and why in str(refused.value)


@pytest.mark.parametrize("version", ["0.17.6", "1.0.0", "2.0"])
def test_another_version_of_d2l_is_not_known(d2l, version):
    sys.modules["d2l"].__version__ = version
    with pytest.raises(AttributeError, match=rf"'corr2d'.*d2l {version}.*d2l=={VERSION}"):
        hand_on("corr2d", "d2l.mxnet", OURS)


@pytest.mark.parametrize("name", ["__wrapped__", "_private", "nowhere"])
def test_names_that_are_not_there(d2l, name):
    with pytest.raises(AttributeError, match=name):
        hand_on(name, "d2l.mxnet", OURS)


def test_private_names_do_not_import_d2l(monkeypatch):
    """Tools ask modules for such names all the time."""
    monkeypatch.setitem(sys.modules, "d2l", None)
    with pytest.raises(AttributeError) as refused:
        hand_on("_repr_html_", "d2l.mxnet", OURS)
    assert "pip install" not in str(refused.value)


def test_without_d2l_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "d2l", None)
    monkeypatch.delitem(sys.modules, "d2l.mxnet", raising=False)
    with pytest.raises(AttributeError, match=r"pip install d2l==1\.0\.3"):
        hand_on("corr2d", "d2l.mxnet", OURS)


def test_images_stay_as_they_are_without_a_side():
    X = np.zeros((2, 1, 28, 28), np.float32)
    assert resize_images(X, None) is X
    for side in (0, -1, 2.5, "a", True):
        with pytest.raises(ValueError, match=f"resize={side!r}.*pixels"):
            resize_images(X, side)


def test_images_are_scaled():
    """Bilinear: what is flat stays flat, a slope stays a slope, in the same direction."""
    X = np.empty((2, 1, 28, 28), np.float32)
    X[0], X[1] = 0.25, np.arange(28) / 27
    Y = resize_images(X, 56)
    assert Y.shape == (2, 1, 56, 56) and Y.dtype == np.float32
    assert np.all(Y[0] == 0.25)
    columns = Y[1, 0]
    assert np.allclose(columns, columns[:1])  # rows alike: x was scaled along x
    inner = np.diff(columns[0])[2:-2]
    assert np.allclose(inner, 1 / 54, atol=1e-5)


class NumPyRules(Rules):
    Array = np.ndarray
    Device = int


def test_a_function_or_a_parameter_without_a_rule_is_refused_when_it_is_made():
    def new_function(data):
        pass

    def seed(n, data=None):
        pass

    for function in (new_function, seed):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(.*Rules"):
            NumPyRules().checked(function)


def test_a_function_has_the_rules_of_its_own_entry():
    def seed(n):
        return n

    checked = NumPyRules().checked(seed)
    assert checked(3) == checked(n=3) == 3
    with pytest.raises(ArgumentError, match="n is -1"):
        checked(-1)
