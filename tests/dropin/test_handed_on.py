"""What d2l's names do, of all of them: those that train, load data or pick devices are refused."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from what_d2l_does import DEEDS, FRAMEWORKS, deeds, definitions, refused, source

from d2lmgpu.backend.refusals import REFUSED, VERSION

FOLDER = Path(__file__).parent
TRAINS, LOADS, PICKS, ALL = DEEDS


def in_own_process(program, *args):
    """Output of ``program``: one framework a process."""
    ran = subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, cwd=FOLDER
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_list_is_that_of_the_pinned_source():
    from d2lmgpu import torch

    lines = (FOLDER.parents[1] / "requirements.txt").read_text(encoding="utf-8").split()
    assert f"d2l=={VERSION}" in lines
    assert refused(torch.__all__) == REFUSED


@pytest.mark.parametrize(
    "code, does",
    [
        ("def f():\n    return requests.get(URL)", {LOADS}),
        ("def f(x=torchvision.datasets.MNIST()):\n    pass", {LOADS}),
        ("class f(gluon.data.Dataset):\n    pass", {LOADS}),
        ("def f():\n    l = [g(1)]\n    l[0].sum().backward()", {TRAINS}),
        ("class f:\n    def fit(self):\n        self.g().backward()", {TRAINS}),
        ("def f(net, train_iter):\n    pass", {TRAINS}),
        ("def f():\n    return torch.device('cuda')", {PICKS}),
        ("f = lambda: npx.num_gpus()", {PICKS}),
        ("class f:\n    where = torch.cuda.device_count()", {PICKS}),
        ("f = sys.modules[__name__]", {ALL}),
        ("def f():\n    return _g()\ndef _g():\n    return h()\ndef h():\n    open('x')", {LOADS}),
        ("class f(d2l.Base):\n    pass\nclass Base:\n    a = npx.gpu", {PICKS}),
        ("def f(x=d2l.try_gpu()):\n    pass\ndef try_gpu():\n    return torch.device(0)", {PICKS}),
        ("def f():\n    pass\ndef f():\n    open('x')", {LOADS}),
        ("def f(x, device):\n    return x.to(device)", set()),
        ("def f(x):\n    return reopen(x.backwards, my_requests.get_all)", set()),
        ("def f(x):\n    return x.to(d2l.cpu())\ndef cpu():\n    return torch.device(0)", set()),
    ],
)
def test_what_code_does_is_seen(code, does):
    assert deeds(ast.parse(code)).get("f", set()) == does


HANDED_ON = """
import importlib, json, sys
ours = importlib.import_module("d2lmgpu." + sys.argv[1])
refused, rest = json.loads(sys.argv[2])
for name in refused:
    try:
        raise SystemExit(f"{name} is handed on: {getattr(ours, name)}")
    except AttributeError as error:
        assert f"{name!r} is not handed on" in str(error), error
assert "d2l" not in sys.modules, "a refusal has imported d2l"
ours.corr2d  # d2l is imported
theirs = sys.modules["d2l." + sys.argv[1]]
for name in rest:
    assert name in ours.__all__ or getattr(ours, name) is getattr(theirs, name), name
print("right")
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_name_of_d2l_is_ours_refused_or_d2ls(framework):
    module = source(framework)
    listed = {name for names in REFUSED.values() for name in names}
    names = {name for name in definitions(module) if not name.startswith("_")}
    assert len(names) > 150 and len(names & listed) > 40
    halves = sorted(names & listed), sorted(names - listed)
    assert in_own_process(HANDED_ON, framework, json.dumps(halves)) == "right\n"


# d2l's own code, guarded: whatever it would fetch, train or pick raises.
GUARDED = """
import socket, sys
import numpy as np
from d2lmgpu import {framework} as d2l
d2l.corr2d  # d2l is imported
def guard(*args, **kwargs):
    raise SystemExit("it has harmed")
socket.socket.connect = guard
{guards}
x = d2l.tensor(np.arange(12.0, dtype="float32").reshape(3, 4))
ones = d2l.ones
assert d2l.corr2d(x, ones((2, 2))).shape == (2, 3)
assert d2l.linreg(x, ones((4, 1)), 1.0).shape == (3, 1)
assert float(d2l.squared_loss(ones((2,)), 0 * ones((2,))).sum()) == 1
assert d2l.masked_softmax(ones((1, 2, 3)), d2l.tensor(np.array([2]))).shape == (1, 2, 3)
assert d2l.bleu("a b c", "a b c", 2) == 1
vocab = d2l.Vocab(["a", "b", "a"])
assert vocab.to_tokens(vocab["a"]) == "a" and len(vocab) == 3
boxes = d2l.box_corner_to_center(d2l.box_center_to_corner(x))
assert abs(float((boxes - x).sum())) < 1e-5
assert d2l.multibox_prior(ones((1, 1, 2, 2)), sizes=[0.5], ratios=[1]).shape == (1, 4, 4)
assert d2l.box_iou(ones((1, 4)) * x[:1], x[:2]).shape == (1, 2)
assert d2l.truncate_pad([1, 2, 3], 2, 0) == [1, 2]
assert len(d2l.train_2d(lambda a, b, c, d: (a / 2, b / 2, c, d), steps=3)) == 4
d2l.set_figsize()
print("pure")
"""
GUARDS = {
    "torch": """
import torch
torch.Tensor.backward = torch.utils.data.DataLoader.__init__ = guard
""",
    "mxnet": """
from mxnet import gluon
gluon.Trainer.step = gluon.data.DataLoader.__init__ = guard
""",
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_pure_helpers_work(framework):
    program = GUARDED.format(framework=framework, guards=GUARDS[framework])
    assert in_own_process(program).endswith("pure\n")


OF_OWN_ARRAYS = """
import re, sys
from d2lmgpu import {framework} as d2l
{imports}
try:
    d2l.load_array
except AttributeError as error:
    told = re.search(r"Instead: (.*), and then split_batch", str(error))[1]
arrays, batch_size, is_train = ({array}([[1.0], [2.0], [3.0]]), {array}([1, 2, 3])), 2, False
batches = [d2l.split_batch(X, y, d2l.devices(1)) for X, y in eval(told)]
print([float(y[0].sum()) for _, y in batches])
"""


@pytest.mark.parametrize(
    "framework, imports, array",
    [
        ("torch", "import torch", "torch.tensor"),
        ("mxnet", "from mxnet import gluon, np", "np.array"),
    ],
)
def test_load_array_is_answered_with_what_works(framework, imports, array):
    assert in_own_process(OF_OWN_ARRAYS.format(**locals())) == "[3.0, 3.0]\n"
